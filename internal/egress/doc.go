// Package egress is the only HTTP client to the outside: deliveries, creates,
// reads, captures and test pings all go through it (SF-15).
//
// A Policy says where requests may go, a Client sends them. Every address that
// a name leads to is judged before it is dialled, and the address actually
// dialled is judged again in the socket call. There are no redirects, no proxy
// from the environment, no cookies and no transparent decompression; time,
// headers, body and connections are bounded.
//
// Errors hold a host at most, never a path, a query or an address that DNS
// gave, and say whether the request may have reached the server.
package egress
