package config

import (
	"time"
)

// Listing says how a list of what a provider or a sender has is read (1-product
// E3): its entries, what is told of each, and how one page leads to the next.
type Listing struct {
	// Items points to the array of entries; empty where the answer is that array.
	Items  string
	Fields ListFields
	Paging Paging
}

// ListFields are JSON Pointers into an entry, empty for what it does not tell.
type ListFields struct {
	// Task is the provider's id of the task, Event that of the event.
	Task  string `yaml:"task"`
	Event string `yaml:"event"`
	// State is the provider's word for the state that the entry tells.
	State string `yaml:"state"`
	// Time is when it was made, or changed: RFC 3339, or Unix seconds.
	Time string `yaml:"time"`
}

// Paging says how one page leads to the next. At most one of Next, Last and
// Offset is set; with none of them the list is one page.
type Paging struct {
	// Param is the parameter of the query that says where a page begins.
	Param string `yaml:"param"`
	// Next points to its next value in the answer. The list ends where that is
	// absent, null or empty. Of a link only the parameter is taken.
	Next string `yaml:"next"`
	// Last points to it in the last entry of the page.
	Last string `yaml:"last"`
	// Offset counts entries.
	Offset bool `yaml:"offset"`
	// More points to a boolean in the answer: false ends the list.
	More string `yaml:"more"`
	// Overlap says that Last is a time, and that a page begins so much before the
	// last entry: a time cannot tell entries of the same second apart (O-061).
	Overlap time.Duration `yaml:"overlap"`
	// SizeParam is the parameter that takes Size, how many entries a page has.
	SizeParam string `yaml:"size_param"`
	Size      int    `yaml:"size"`
	// SinceParam is the parameter that takes the earliest time that is wanted.
	SinceParam string `yaml:"since_param"`
	// Unix says that times in the query are Unix seconds and not RFC 3339.
	Unix bool `yaml:"unix"`
	// NewestFirst says that no entry is younger than those before it, so that the
	// list can be left at the earliest time that is wanted.
	NewestFirst bool `yaml:"newest_first"`
}

// SourceList is the list of what a generic source has sent.
type SourceList struct {
	// URL is its address.
	URL string `yaml:"url"`
	// Key is the credential, sent in Header (Authorization if that is empty) as
	// Format (Bearer {key} if that is).
	Key    Secret `yaml:"key"`
	Header string `yaml:"header"`
	Format string `yaml:"format"`
	// Timeout bounds one page; 0 means 10 s.
	Timeout time.Duration `yaml:"timeout"`
	// Rate is how many pages a second are asked for at most; 0 means 2.
	Rate   float64    `yaml:"rate"`
	Items  string     `yaml:"items"`
	Fields ListFields `yaml:"fields"`
	Paging Paging     `yaml:"paging"`
}

// Listing is how it is read.
func (l SourceList) Listing() Listing { return Listing{l.Items, l.Fields, l.Paging} }

// maxListTimeout leaves the call of the API its own time.
const maxListTimeout = 15 * time.Second

// sourceList checks what needs no look at the pointers.
func (k *checker) sourceList(key string, l SourceList) {
	if l.URL == "" {
		k.say(key+".url", "is missing; write the list's address, such as https://api.example.com/v1/events")
	}
	k.credential(key, l.Key, l.Header, l.Format)
	if l.Timeout != 0 && (l.Timeout < 0 || l.Timeout > maxListTimeout) {
		k.say(key+".timeout", "must be longer than 0 and at most 15s")
	}
	if l.Rate != 0 {
		k.within(key+".rate", l.Rate, 0.01, 100)
	}
}
