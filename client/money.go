package client

import (
	"encoding/json"

	"github.com/pawlhq/pawl"
)

// Money is an exact amount in a currency. Amounts are never converted and never
// pass through a float.
type Money struct {
	Amount   pawl.Amount
	Currency string
}

// MoneyOf reads an amount such as "0.15".
func MoneyOf(amount, currency string) (Money, error) {
	a, err := pawl.ParseAmount(amount)
	return Money{a, currency}, err
}

// String is the amount with its currency.
func (m Money) String() string { return m.Amount.String() + " " + m.Currency }

type moneyJSON struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// MarshalJSON writes the API's form.
func (m Money) MarshalJSON() ([]byte, error) {
	return json.Marshal(moneyJSON{m.Amount.String(), m.Currency})
}

// UnmarshalJSON reads the API's form.
func (m *Money) UnmarshalJSON(text []byte) error {
	var in moneyJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	a, err := pawl.ParseAmount(in.Amount)
	*m = Money{a, in.Currency}
	return err
}

// Cost is what an operation costs: the reservation while it is open, then the
// charge; for an unmetered operation the provider's figure.
type Cost struct {
	Money
	// Settled says that it is final.
	Settled bool
}

// MarshalJSON writes the API's form.
func (c Cost) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		moneyJSON
		Settled bool `json:"settled"`
	}{moneyJSON{c.Amount.String(), c.Currency}, c.Settled})
}

// UnmarshalJSON reads the API's form.
func (c *Cost) UnmarshalJSON(text []byte) error {
	var in struct {
		Settled bool `json:"settled"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	c.Settled = in.Settled
	return c.Money.UnmarshalJSON(text)
}

// decimal is an amount that the API writes without a currency.
type decimal pawl.Amount

// UnmarshalText reads it.
func (d *decimal) UnmarshalText(text []byte) error {
	a, err := pawl.ParseAmount(string(text))
	*d = decimal(a)
	return err
}
