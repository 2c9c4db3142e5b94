package cli

type eventTypesCmd struct{}

// Help teaches by example.
func (eventTypesCmd) Help() string {
	return "Each type has an example of the body that endpoints get; --json shows it.\n\n" +
		examples(`pawl event types`, `pawl event types --json | jq '.items[] | select(.type == "operation.succeeded").example'`)
}

func (eventTypesCmd) Run(s *session) error { return s.list("/v1/event-types", nil, "type", "meaning") }
