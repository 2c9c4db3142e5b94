package strict

import "net/http"

// MaxHead is the largest request line with its headers, in bytes (2-contracts
// §1, limits).
const MaxHead = 32 << 10

// HeadSize is how many bytes the line and the headers of a received request
// take in HTTP/1.1, each written in the shortest way; what net/http keeps apart
// from the headers (Transfer-Encoding, Trailer) is not counted.
func HeadSize(r *http.Request) int {
	const line, field = len("  \r\n"), len(": \r\n")
	size := len(r.Method) + len(r.RequestURI) + len(r.Proto) + line + len("\r\n")
	if r.Host != "" {
		size += len("Host") + len(r.Host) + field
	}
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + field
		}
	}
	return size
}
