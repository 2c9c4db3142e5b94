package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// fsync is the median time to append 4 KB to a file and sync it.
func fsync(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []time.Duration
	block := make([]byte, 4096)
	for range 100 {
		at := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
