package pawl_test

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]pawl.Amount{
		"0": 0, "1": 1e9, "12": 12e9, "-0.5": -5e8, "0.15": 15e7, "0.120000000": 12e7, "0.000000001": 1, "-0": 0, "007": 7e9,
		"0.1000000000000": 1e8, "9223372036.854775807": math.MaxInt64, "-9223372036.854775807": -math.MaxInt64,
	} {
		if got, err := pawl.ParseAmount(text); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": pawl.ErrAmount, "-": pawl.ErrAmount, ".": pawl.ErrAmount, "1.": pawl.ErrAmount, ".5": pawl.ErrAmount, "+1": pawl.ErrAmount,
		"1e3": pawl.ErrAmount, "0x1": pawl.ErrAmount, " 1": pawl.ErrAmount, "1,5": pawl.ErrAmount, "--1": pawl.ErrAmount, "1.2.3": pawl.ErrAmount,
		"NaN": pawl.ErrAmount, "٣": pawl.ErrAmount, "0.0000000001": pawl.ErrAmountFine, "9223372036.854775808": pawl.ErrAmountRange,
		"99999999999999999999": pawl.ErrAmountRange, "-9223372036.854775808": pawl.ErrAmountRange,
	} {
		if _, err := pawl.ParseAmount(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestRoundAmount(t *testing.T) {
	for text, want := range map[string]pawl.Amount{
		"0.0000000005": 1, "0.00000000049999": 0, "-0.0000000005": -1, "1.9999999995": 2e9, "1e3": 1000e9, "1E+2": 100e9, "1.5e-3": 1_500_000,
		"12345e-2": 123_450_000_000, "1e-9": 1, "5e-10": 1, "4e-10": 0, "1e-400": 0, "0e999999999999": 0, "-2.5e0": -25e8, "0.1e1": 1e9,
		"0.00000000000000000000000000000000000000000000000001e50": 1e9, "1e09": 1e18,
	} {
		if got, err := pawl.RoundAmount(text); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"e5": pawl.ErrAmount, "1e": pawl.ErrAmount, "1e+": pawl.ErrAmount, "1e+-5": pawl.ErrAmount, "1.e5": pawl.ErrAmount, ".5e1": pawl.ErrAmount,
		"1e5e5": pawl.ErrAmount, "1-2e3": pawl.ErrAmount, "1e1.5": pawl.ErrAmount, "1e10": pawl.ErrAmountRange, "1e999999999999": pawl.ErrAmountRange,
		"9223372036.8547758075": pawl.ErrAmountRange,
	} {
		if _, err := pawl.RoundAmount(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// FuzzRoundAmount compares with rational arithmetic.
func FuzzRoundAmount(f *testing.F) {
	for _, text := range []string{"1", "-0.5", "1e9", "1.5e-9", "0.0000000005", "9223372036.854775807", "00.10e+02", "1e-999", "0e5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		got, err := pawl.RoundAmount(text)
		if !decimal.MatchString(text) {
			if err == nil && !strings.ContainsAny(text, "eE") {
				t.Fatalf("%q is no decimal and gives %d", text, got)
			}
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("big.Rat refuses %q", text)
		}
		want := half(exact.Mul(exact, big.NewRat(pawl.AmountScale, 1)))
		inRange := want.CmpAbs(big.NewInt(math.MaxInt64)) <= 0
		if inRange != (err == nil) || err == nil && big.NewInt(int64(got)).Cmp(want) != 0 {
			t.Errorf("%q: %d %v, want %s", text, got, err, want)
		}
	})
}

// half rounds to whole numbers, halves away from zero.
func half(x *big.Rat) *big.Int {
	two := new(big.Int).Mul(x.Num(), big.NewInt(2))
	if x.Sign() < 0 {
		two.Sub(two, x.Denom())
	} else {
		two.Add(two, x.Denom())
	}
	return two.Quo(two, new(big.Int).Mul(x.Denom(), big.NewInt(2)))
}

// FuzzAmountString: the text of every amount is read back as that amount.
func FuzzAmountString(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 999_999_999, 1_000_000_000, math.MaxInt64, -math.MaxInt64} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		if n == math.MinInt64 {
			return
		}
		text := pawl.Amount(n).String()
		if want := new(big.Rat).SetFrac64(n, pawl.AmountScale).FloatString(9); text != want {
			t.Errorf("%d is written %s, want %s", n, text, want)
		}
		if back, err := pawl.ParseAmount(text); err != nil || back != pawl.Amount(n) {
			t.Errorf("%s is read back as %d, %v", text, back, err)
		}
	})
}

func TestAmountAdd(t *testing.T) {
	for _, a := range []pawl.Amount{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		for _, b := range []pawl.Amount{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			sum := new(big.Int).Add(big.NewInt(int64(a)), big.NewInt(int64(b)))
			got, ok := a.Add(b)
			if ok != sum.IsInt64() || ok && int64(got) != sum.Int64() {
				t.Errorf("%d + %d = %d %v, want %s", a, b, got, ok, sum)
			}
		}
	}
}

func TestValidCurrency(t *testing.T) {
	for code, want := range map[string]bool{"USD": true, "XTS": true, "usd": false, "US": false, "USDT": false, "U1D": false, "": false, "ÄBC": false} {
		if pawl.ValidCurrency(code) != want {
			t.Errorf("%q: want %v", code, want)
		}
	}
}
