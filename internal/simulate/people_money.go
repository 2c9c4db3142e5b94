package simulate

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// credit has somebody add to an account, or take from it, once under one key,
// however often it is asked.
func (w *world) credit() {
	t := pick(w.dice, w.tenants...)
	amount := pick[pawl.Amount](w.dice, pawl.AmountScale, 10*pawl.AmountScale, -pawl.AmountScale)
	c := ledger.Credit{Tenant: t.name, Account: t.account, Amount: amount, Note: "credit"}
	c.Once = ledger.Once{APIKey: t.key, KeyTenant: t.name, Key: fmt.Sprint("credit-", w.steps), Window: window}
	w.books.credits[c.Key] = &creditBook{tenant: t, amount: amount, since: w.latest}
	w.askCredit(c, 1)
}

func (w *world) askCredit(c ledger.Credit, try int) {
	answered := false
	w.books.credits[c.Key].tries++
	w.person("credit", func(n *node) {
		out, err := n.Do(noLimit, c)
		if err != nil || w.hit(AnswerLost, 200) {
			return
		}
		answered = true
		w.books.credited[c.Key], w.books.refused[c.Key] = out.Err == nil, out.Err != nil
	})
	w.after(w.between(time.Second, 30*time.Second), func() {
		if !answered && try < 5 {
			w.askCredit(c, try+1)
		}
	})
}
