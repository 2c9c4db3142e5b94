package simulate

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestDev(t *testing.T) {
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	to, _ := strconv.Atoi(os.Getenv("TO"))
	for seed := from; seed <= to; seed++ {
		o := Options{Hash: os.Getenv("HASH") != ""}
		if os.Getenv("TRACE") != "" {
			o.Trace = func(l string) { fmt.Println(l) }
		}
		r := Run(uint64(seed), o)
		fmt.Printf("seed %d ops %d cmds %d commits %d steps %d virtual %v took %v %s\n", seed, r.Operations, r.Commands, r.Commits, r.Steps, r.Virtual, r.Took, r.Hash)
		for _, v := range r.Violations {
			fmt.Println("   ", v)
		}
	}
}
