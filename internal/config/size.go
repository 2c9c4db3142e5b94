package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// The units of sizes.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// units are the words of units, the largest first.
var units = [...]struct {
	word string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// String writes the size in its largest whole unit, as a configuration has it.
func (s Size) String() string {
	for _, u := range units {
		if s%u.size == 0 && s != 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.word
		}
	}
	return "0B"
}

var errSize = errors.New("not a size; write a whole number and a unit, such as 512MiB or 2GiB")

func readSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.word)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.size) {
			return 0, errSize
		}
		return Size(n) * u.size, nil
	}
	return 0, errSize
}
