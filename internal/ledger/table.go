package ledger

import "iter"

// Table is the part of a batch's rows that lives in one table: each row as it
// was loaded and as the batch's commands have left it. It is used by one
// goroutine at a time.
type Table[K, R comparable] struct {
	cells map[K]*cell[R]
	order []K
}

type cell[R comparable] struct {
	was, now        R
	existed, exists bool
}

// Change is a row that a batch changed, added or removed.
type Change[R comparable] struct {
	Was     R
	Now     R
	Existed bool
	// Gone says that the row, which existed, is to be removed; Now is then empty.
	Gone bool
}

// Loaded records a row as stored; exists is false where there is none. A row
// already present is left as it is.
func (t *Table[K, R]) Loaded(k K, r R, exists bool) {
	if t.cells == nil {
		t.cells = make(map[K]*cell[R])
	}
	if _, ok := t.cells[k]; ok {
		return
	}
	t.cells[k] = &cell[R]{was: r, now: r, existed: exists, exists: exists}
	t.order = append(t.order, k)
}

// Has reports whether the row was loaded, be it present or absent.
func (t *Table[K, R]) Has(k K) bool {
	_, ok := t.cells[k]
	return ok
}

// Get is the row as the batch has left it so far.
func (t *Table[K, R]) Get(k K) (R, bool) {
	c, ok := t.cells[k]
	if !ok || !c.exists {
		var none R
		return none, false
	}
	return c.now, true
}

// All yields the present rows in the order of loading.
func (t *Table[K, R]) All() iter.Seq2[K, R] {
	return func(yield func(K, R) bool) {
		for _, k := range t.order {
			if c := t.cells[k]; c.exists && !yield(k, c.now) {
				return
			}
		}
	}
}

// Changes yields what must be saved, in a stable order.
func (t *Table[K, R]) Changes() iter.Seq2[K, Change[R]] {
	return func(yield func(K, Change[R]) bool) {
		for _, k := range t.order {
			c := t.cells[k]
			if c.exists && (!c.existed || c.now != c.was) &&
				!yield(k, Change[R]{Was: c.was, Now: c.now, Existed: c.existed}) {
				return
			}
			if !c.exists && c.existed && !yield(k, Change[R]{Was: c.was, Existed: true, Gone: true}) {
				return
			}
		}
	}
}

func (t *Table[K, R]) put(k K, r R) {
	if c, ok := t.cells[k]; ok {
		c.now, c.exists = r, true
		return
	}
	t.Loaded(k, r, false)
	c := t.cells[k]
	c.now, c.exists = r, true
}

func (t *Table[K, R]) remove(k K) {
	var none R
	if c, ok := t.cells[k]; ok {
		c.now, c.exists = none, false
	}
}

// View is one command's overlay on a table: it reads its own writes, and the
// whole of it is applied or discarded.
type View[K, R comparable] struct {
	table *Table[K, R]
	over  []write[K, R]
	miss  func(K) Keys
}

type write[K, R comparable] struct {
	key  K
	row  R
	gone bool
}

// Get is the row as this command sees it. A row that was not loaded is a
// [Miss].
func (v *View[K, R]) Get(k K) (R, bool) {
	for i := len(v.over) - 1; i >= 0; i-- {
		if v.over[i].key == k {
			return v.over[i].row, !v.over[i].gone
		}
	}
	if !v.table.Has(k) {
		panic(Miss{Keys: v.miss(k)})
	}
	return v.table.Get(k)
}

// known reports whether [View.Get] has an answer, be it that there is no such row.
func (v *View[K, R]) known(k K) bool {
	for i := range v.over {
		if v.over[i].key == k {
			return true
		}
	}
	return v.table.Has(k)
}

// Put changes or adds a row.
func (v *View[K, R]) Put(k K, r R) {
	for i := range v.over {
		if v.over[i].key == k {
			v.over[i].row, v.over[i].gone = r, false
			return
		}
	}
	v.over = append(v.over, write[K, R]{key: k, row: r})
}

// Remove takes a row away. Only claims are ever removed, and seals of the audit
// that a later one stands for: whatever tells what happened stays.
func (v *View[K, R]) Remove(k K) {
	var none R
	v.Put(k, none)
	for i := range v.over {
		v.over[i].gone = v.over[i].gone || v.over[i].key == k
	}
}

// all yields every present row that the batch knows, own writes included.
func (v *View[K, R]) all() iter.Seq2[K, R] {
	return func(yield func(K, R) bool) {
		for k := range v.table.All() {
			if r, ok := v.Get(k); ok && !yield(k, r) {
				return
			}
		}
		for _, w := range v.over {
			if _, old := v.table.Get(w.key); !old && !w.gone && !yield(w.key, w.row) {
				return
			}
		}
	}
}

func (v *View[K, R]) apply() {
	for _, w := range v.over {
		if w.gone {
			v.table.remove(w.key)
			continue
		}
		v.table.put(w.key, w.row)
	}
	v.over = v.over[:0]
}

func (v *View[K, R]) discard() { v.over = v.over[:0] }
