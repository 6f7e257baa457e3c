package account

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Pico is an amount of money in trillionths of a dollar: the price of a token is a whole number of them wherever the price of a million tokens
// is given to a millionth of a dollar. So sums are exact.
type Pico int64

// perUSD is how many units a dollar has.
const perUSD = 1_000_000_000_000

// FromNano returns an amount that is given in billionths of a dollar.
func FromNano(nano int64) Pico { return Pico(nano) * 1000 }

// FromUSD returns an amount in dollars, rounded.
func FromUSD(usd float64) Pico { return Pico(math.Round(usd * perUSD)) }

// USD returns the amount in dollars, for figures that are shown rounded.
func (p Pico) USD() float64 { return float64(p) / perUSD }

// String returns the amount in dollars, exactly.
func (p Pico) String() string {
	sign, n := "", uint64(p) //nolint:gosec // see below
	if p < 0 {
		sign, n = "-", -n // also of the least integer
	}
	text := fmt.Sprintf("%s%d.%012d", sign, n/perUSD, n%perUSD)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes the amount in dollars, exactly.
func (p Pico) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalJSON reads an amount in dollars.
func (p *Pico) UnmarshalJSON(text []byte) error {
	usd, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return fmt.Errorf("%.40q is no amount of money", text)
	}
	n := usd.Mul(usd, big.NewRat(perUSD, 1))
	*p = Pico(new(big.Int).Quo(n.Num(), n.Denom()).Int64())
	return nil
}
