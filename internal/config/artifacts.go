package config

import (
	"net/url"
	"path/filepath"
)

// maxArtifact bounds artifacts.max_size; a link would end before more is fetched.
const maxArtifact = 1024 * GiB

func (k *checker) artifacts(a Artifacts) {
	if _, _, ok := a.Place(""); !ok {
		k.say("artifacts.store", "must be a folder such as file:///var/lib/pawl/artifacts, or mem:// for tests; this version has no other stores")
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

// Place is where captured files are kept: a folder, or the memory of the
// process. Without a store it is the folder artifacts of data. It is not ok for
// any other URL.
func (a Artifacts) Place(data string) (dir string, memory, ok bool) {
	if a.Store == "" {
		return filepath.Join(data, "artifacts"), false, true
	}
	u, err := url.Parse(a.Store)
	switch {
	case err != nil || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", false, false
	case u.Scheme == "mem" && u.Path == "":
		return "", true, true
	}
	return u.Path, false, u.Scheme == "file" && filepath.IsAbs(u.Path)
}
