//go:build clouds

package capture

// google are URLs of Google's buckets, where they are compiled in.
var google = []string{"gs://films?anonymous=true"}
