package cli

// nodesCmd lists who serves the ledger.
type nodesCmd struct{ exporting }

// Help teaches by example.
func (nodesCmd) Help() string {
	return "Shows the nodes that serve the ledger (one with SQLite): alive, draining, or silent, which is not heard of for 30 s: " +
		"dead, frozen or cut off. Beside each is what it held when it was last heard of; what a silent one held goes to the others when its leases end, so nothing need be done. " +
		"Needs a key with scope admin.\n\n" + examples(`pawl nodes`, `pawl nodes --json`)
}

func (nodesCmd) Run(s *session) error {
	return s.list("/v1/nodes", nil, "id", "state", "version", "host", "started_at", "last_seen_at", "lanes", "waiting",
		"holds.creates", "holds.reads", "holds.deliveries", "holds.captures")
}
