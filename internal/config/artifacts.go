package config

import (
	"net/url"
	"path/filepath"
	"regexp"
)

// maxArtifact bounds artifacts.max_size; a link would end before more is fetched.
const maxArtifact = 1024 * GiB

func (k *checker) artifacts(a Artifacts) {
	if _, _, ok := a.Place(""); !ok {
		k.say("artifacts.store", "must be a folder such as file:///var/lib/pawl/artifacts, a bucket such as s3://NAME?region=eu-west-1, azblob://CONTAINER or gs://NAME, or mem:// for tests")
	}
	if a.MaxSize < 1 || a.MaxSize > maxArtifact {
		k.say("artifacts.max_size", "must be from 1B to 1024GiB; write a size such as 5GiB")
	}
	k.duration("artifacts.link_ttl", a.LinkTTL)
	k.within("artifacts.concurrency", float64(a.Concurrency), 1, 1000)
	k.within("artifacts.per_host", float64(a.PerHost), 1, 1000)
}

func (k *checker) release(key, word string) {
	if word != "" {
		k.oneOf(key+".release", word, ReleaseHold)
	}
}

// bucketName is what the three vendors allow for one between them.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,221}$`)

// Place is where captured files are kept: a folder, or else the URL of a bucket
// or of the memory of the process. Without a store it is the folder artifacts of
// data. It is not ok for any other URL.
func (a Artifacts) Place(data string) (dir, bucket string, ok bool) {
	if a.Store == "" {
		return filepath.Join(data, "artifacts"), "", true
	}
	u, err := url.Parse(a.Store)
	if err != nil || u.User != nil || u.Fragment != "" {
		return "", "", false
	}
	switch u.Scheme {
	case "file":
		return u.Path, "", u.Host == "" && u.RawQuery == "" && filepath.IsAbs(u.Path)
	case "mem":
		return "", a.Store, u.Host == "" && u.RawQuery == "" && u.Path == ""
	case "s3", "gs", "azblob":
		return "", a.Store, bucketName.MatchString(u.Host) && (u.Path == "" || u.Path == "/")
	}
	return "", "", false
}
