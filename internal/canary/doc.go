// Package canary proves that Pawl keeps secrets: its tests send distinctive
// values, one for each class of what must not leak, through every path, and
// look for them in everything that Pawl writes (1-product I4, PR-01, PR-09).
//
// It holds tests only. What may appear where is one table, the map may of
// table_test.go; whatever is not in it is a leak.
package canary
