//go:build clouds

package capture

// Google's driver alone takes more memory than all the rest of the program
// (docs/decisions/blob-stores.md).
import _ "gocloud.dev/blob/gcsblob"
