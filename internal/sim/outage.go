package sim

// Fail begins an outage of the provider, or ends it. While it lasts every call is
// answered 500 and does nothing, and callbacks that fall due are lost for good.
// Tasks go on: what ended meanwhile is learned by a read.
func (s *Server) Fail(on bool) {
	s.down.Store(on)
	s.courier.down.Store(on)
}

// lost drops a callback that falls due during an outage.
func (c *courier) lost(j *job, attempt Attempt) {
	attempt.Fault = CallbackDropped
	c.note(j, attempt)
	if j.tried != nil && j.attempt == 0 {
		close(j.tried)
	}
}

// Fail takes the receiver down, or brings it back: while it is down everything is
// answered 500 before it is looked at.
func (r *Receiver) Fail(on bool) { r.down.Store(on) }
