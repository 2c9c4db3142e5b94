package storetest

// Commands are generators of the ledger's commands.
func Commands() []Generator { return nil }
