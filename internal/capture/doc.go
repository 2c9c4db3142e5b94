// Package capture saves the files of results before the providers' links to
// them end: it claims the artifacts that are due, those first whose links end
// first, fetches each into a spool file that survives a crash, and stores the
// copy, checked, in the blob store. It also gives captured files out by links
// of our own, signed and short-lived (1-product G1 to G3).
//
// A provider's link is read here and nowhere else. It is in no error, log or
// metric: what failed is told in words of ours, with bytes and statuses.
package capture
