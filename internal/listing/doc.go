// Package listing reads the lists that providers and senders keep of their tasks
// or of what they sent, one bounded page a call (1-product E3). How a list is
// read is data ([config.Listing]); what follows from an entry is not decided here.
//
// Whoever walks a list holds the [Cursor] between two pages, so that no node
// keeps anything of the walk and another one may go on with it. A walk always
// ends: a page that leads back to an earlier one, or that only repeats, is an
// error.
package listing
