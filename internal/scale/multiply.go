package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// Period is how far back the operations of a filled ledger go.
const Period = 30 * 24 * time.Hour

// rowsTogether is how many rows one transaction writes at most, beside those that
// there are once. PostgreSQL ends a transaction that gathers rows for seconds.
const rowsTogether = 4_000

// Fill adds at least as many operations as are wanted to a ledger that nobody
// serves, and has no tenant of the same name. progress, if not nil, is told how
// many are there. The lives are lived in a folder under dir, which is removed.
func Fill(ctx context.Context, d store.Driver, dir string, operations int, progress func(int)) (err error) {
	dir, err = os.MkdirTemp(dir, "seed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	first, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	if err := seed(ctx, first); err != nil {
		return err
	}
	m := multiplier{copies: (operations + Lives - 1) / Lives, shared: make(map[pawl.ID]bool), sequences: make(map[pawl.ID]int64)}
	m.step = (Period / time.Duration(m.copies)).Truncate(time.Millisecond)
	if err := m.read(ctx, first); err != nil {
		return err
	}
	return m.write(ctx, d, progress)
}

// multiplier writes the rows of a small ledger many times.
type multiplier struct {
	copies int
	// step is how much earlier each copy is than the one after it.
	step time.Duration
	// once are written once, many once for each copy.
	once, many []any
	// shared are the ids that all copies have in common.
	shared map[pawl.ID]bool
	// sequences are how many numbers a copy takes of an endpoint's stream.
	sequences map[pawl.ID]int64
}

// read takes the small ledger apart.
func (m *multiplier) read(ctx context.Context, from store.Whole) error {
	counts, err := from.Counts(ctx)
	if err != nil {
		return err
	}
	for _, t := range counts {
		err := from.Export(ctx, t.Table, 0, func(row any) error { m.take(row); return nil })
		if err != nil {
			return fmt.Errorf("%s: %w", t.Table, err)
		}
	}
	return nil
}

func (m *multiplier) take(row any) {
	n := int64(m.copies)
	switch row := row.(type) {
	case ledger.Tenant:
		m.once = append(m.once, row)
	case ledger.WrappingKey, ledger.AuditSeal:
	case ledger.APIKey:
		m.shared[row.ID] = true
		m.once = append(m.once, row)
	case ledger.Endpoint:
		m.shared[row.ID], m.shared[row.DeadLetter] = true, true
		m.once = append(m.once, row)
	case ledger.Account:
		m.shared[row.ID] = true
		row.Charged, row.Reserved = row.Charged*pawl.Amount(n), row.Reserved*pawl.Amount(n)
		m.once = append(m.once, row)
	case ledger.Source:
		row.Parked, row.UnknownTypes = row.Parked*n, row.UnknownTypes*n
		m.once = append(m.once, row)
	case ledger.Queue:
		m.sequences[row.ID.Endpoint] = row.Sequence
		row.Sequence *= n
		row.NextDue = m.earlier(row.NextDue, m.copies-1)
		m.once = append(m.once, row)
	case ledger.Entry:
		m.sort(row, row.Operation.IsZero())
	case ledger.Review:
		m.sort(row, m.shared[row.ID])
	case ledger.IdempotencyKey, ledger.Correlation, ledger.EventKey, ledger.Task, ledger.Operation, ledger.Event, ledger.Delivery,
		ledger.History, ledger.Attempt, ledger.Payload, ledger.Artifact, ledger.Audit:
		m.sort(row, false)
	default:
		panic(fmt.Sprintf("scale: a %T is not thought of", row))
	}
}

func (m *multiplier) sort(row any, once bool) {
	if once {
		m.once = append(m.once, row)
	} else {
		m.many = append(m.many, row)
	}
}

// write writes everything, the oldest copy first.
func (m *multiplier) write(ctx context.Context, d store.Driver, progress func(int)) error {
	rows, n := &ledger.Rows{}, 0
	flush := func() error {
		saved := rows
		rows, n = &ledger.Rows{}, 0
		return d.Update(ctx, store.NewID(), func(tx store.Tx) error { return tx.Save(saved) })
	}
	for _, row := range m.once {
		rows.Add(row)
	}
	for i := m.copies - 1; i >= 0; i-- {
		for _, row := range m.many {
			rows.Add(m.copy(row, i))
			if n++; n == rowsTogether {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if progress != nil {
			progress((m.copies - i) * Lives)
		}
	}
	return flush()
}

// earlier is a moment of the newest copy in the i-th before it.
func (m *multiplier) earlier(t pawl.Time, i int) pawl.Time {
	if t == 0 || t == pawl.Never {
		return t
	}
	return t.Add(-time.Duration(i) * m.step)
}

// id is that of the i-th copy: ids begin with 48 bits of milliseconds.
func (m *multiplier) id(id pawl.ID, i int) pawl.ID {
	if id.IsZero() || m.shared[id] {
		return id
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	ms -= int64(i) * m.step.Milliseconds()
	for at := 5; at >= 0; at-- {
		id[at] = byte(ms)
		ms >>= 8
	}
	return id
}

// named are the fields that others give names in, which each copy has of its
// own.
var named = map[string]bool{
	"Task": true, "CorrelationID": true, "RequestID": true, "UpstreamRequestID": true, "ExternalID": true, "Value": true,
}

// copy is a row of the i-th copy.
func (m *multiplier) copy(row any, i int) any {
	v := reflect.New(reflect.TypeOf(row)).Elem()
	v.Set(reflect.ValueOf(row))
	m.change(v, i)
	switch row := v.Interface().(type) {
	case ledger.EventKey:
		row.ID.Event = fmt.Sprint(row.ID.Event, "-", i)
		return row
	case ledger.Delivery:
		if row.Sequence > 0 {
			row.Sequence += int64(m.copies-1-i) * m.sequences[row.Endpoint]
		}
		return row
	case ledger.Audit:
		if prefix, _, ok := strings.Cut(row.Subject, "_"); ok {
			if id, err := pawl.ParseID(prefix, row.Subject); err == nil {
				row.Subject = m.id(id, i).Text(prefix)
			}
		}
		return row
	case ledger.Event:
		row.Snapshot = m.snapshot(row.Snapshot, row.Operation, i)
		return row
	default:
		return row
	}
}

// snapshot is that of an event, about the copy's own operation.
func (m *multiplier) snapshot(text string, copied pawl.ID, i int) string {
	was := m.id(copied, -i)
	return strings.ReplaceAll(text, was.Suffix(), copied.Suffix())
}

func (m *multiplier) change(v reflect.Value, i int) {
	t := v.Type()
	for f := range t.NumField() {
		field := v.Field(f)
		switch is := field.Addr().Interface().(type) {
		case *pawl.ID:
			*is = m.id(*is, i)
		case *pawl.Time:
			*is = m.earlier(*is, i)
		case *string:
			if *is != "" && named[t.Field(f).Name] {
				*is = fmt.Sprint(*is, "-", i)
			}
		default:
			if field.Kind() == reflect.Struct {
				m.change(field, i)
			}
		}
	}
}
