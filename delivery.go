package pawl

// DeliveryState is the state of one event on its way to one endpoint.
type DeliveryState uint8

// The states of a delivery (2-contracts §1).
const (
	// DeliveryPending: due now or later, or waiting for its endpoint.
	DeliveryPending DeliveryState = iota + 1
	// DeliveryDelivering: leased, an attempt is under way.
	DeliveryDelivering
	// DeliveryDelivered: the endpoint answered 2xx.
	DeliveryDelivered
	// DeliveryDead: given up; a dead letter that a person can replay.
	DeliveryDead
	// DeliverySkipped: will not be sent, for a recorded reason.
	DeliverySkipped
)

var deliveryNames = [...]string{
	DeliveryPending: "pending", DeliveryDelivering: "delivering", DeliveryDelivered: "delivered",
	DeliveryDead: "dead", DeliverySkipped: "skipped",
}

// String is the state's word in JSON, SQL and on screens.
func (s DeliveryState) String() string {
	if int(s) < len(deliveryNames) {
		return deliveryNames[s]
	}
	return ""
}

// MarshalText writes the state's word.
func (s DeliveryState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseDeliveryState reads a delivery state's word.
func ParseDeliveryState(word string) (DeliveryState, bool) {
	for s := DeliveryPending; s <= DeliverySkipped; s++ {
		if deliveryNames[s] == word {
			return s, true
		}
	}
	return 0, false
}
