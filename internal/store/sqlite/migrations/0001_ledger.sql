-- +goose Up

-- Ids are 16 bytes, NULL for none outside of keys; times are microseconds,
-- 9223372036854775807 for never; money is in units of 10^-9. Nothing refers to
-- anything by a foreign key: rows that belong together are written by one
-- decision, and `pawl ledger check` finds what hangs loose.

-- Claims: narrow tables, looked up by their key.

CREATE TABLE idempotency_keys (
	tenant TEXT NOT NULL,
	value TEXT NOT NULL,
	api_key BLOB,
	purpose TEXT NOT NULL,
	operation BLOB NOT NULL,
	fingerprint BLOB,
	expires_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_operation ON idempotency_keys (operation);

CREATE TABLE correlations (
	tenant TEXT NOT NULL,
	value TEXT NOT NULL,
	api_key BLOB,
	operation BLOB NOT NULL,
	work BLOB,
	PRIMARY KEY (tenant, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_keys (
	source TEXT NOT NULL,
	task TEXT NOT NULL,
	external_id TEXT NOT NULL,
	event BLOB,
	digest BLOB,
	word TEXT NOT NULL,
	repeats INTEGER NOT NULL,
	differs INTEGER NOT NULL,
	PRIMARY KEY (source, task, external_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_keys_by_event ON event_keys (event);

CREATE TABLE tasks (
	upstream TEXT NOT NULL,
	task TEXT NOT NULL,
	operation BLOB,
	claimed_at INTEGER NOT NULL,
	PRIMARY KEY (upstream, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_operation ON tasks (operation) WHERE operation IS NOT NULL;

CREATE TABLE sources (
	name TEXT NOT NULL PRIMARY KEY,
	parked INTEGER NOT NULL,
	unknown_types INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE unknown_types (
	source TEXT NOT NULL,
	tenant TEXT NOT NULL,
	review BLOB,
	events INTEGER NOT NULL,
	PRIMARY KEY (source, tenant)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
	name TEXT NOT NULL PRIMARY KEY,
	account BLOB,
	created_at INTEGER NOT NULL,
	erase_before INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	name TEXT NOT NULL,
	hash BLOB,
	scopes INTEGER NOT NULL,
	webhook_secret TEXT NOT NULL,
	former_secret TEXT NOT NULL,
	former_until INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	revoked_at INTEGER NOT NULL,
	former_hash BLOB,
	former_hash_until INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	version INTEGER NOT NULL,
	rate INTEGER NOT NULL,
	burst INTEGER NOT NULL,
	budget INTEGER NOT NULL,
	budget_currency TEXT NOT NULL,
	upstreams TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_hash ON api_keys (hash);
CREATE INDEX api_keys_by_former_hash ON api_keys (former_hash) WHERE former_hash IS NOT NULL;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant, id);

CREATE TABLE wrapping_keys (
	name TEXT NOT NULL PRIMARY KEY,
	root TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	retired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Operations and what hangs on one of them.

CREATE TABLE operations (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	api_key BLOB,
	upstream TEXT NOT NULL,
	model TEXT NOT NULL,
	asked_model TEXT NOT NULL,
	request_id TEXT NOT NULL,
	traceparent TEXT NOT NULL,
	adapter TEXT NOT NULL,
	owner TEXT NOT NULL,
	correlation_id TEXT NOT NULL,
	callback_url TEXT NOT NULL,
	callback BLOB,
	retry_of BLOB,
	created_at INTEGER NOT NULL,
	deadline INTEGER NOT NULL,
	state INTEGER NOT NULL,
	version INTEGER NOT NULL,
	event_at INTEGER NOT NULL,
	submitted_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL,
	task TEXT NOT NULL,
	upstream_state TEXT NOT NULL,
	upstream_version INTEGER NOT NULL,
	upstream_request_id TEXT NOT NULL,
	progress INTEGER NOT NULL,
	result BLOB,
	error_code TEXT NOT NULL,
	error_word TEXT NOT NULL,
	error_message TEXT NOT NULL,
	cancel_requested_at INTEGER NOT NULL,
	cancel_confirmed INTEGER NOT NULL,
	cancel_due_at INTEGER NOT NULL,
	cancels INTEGER NOT NULL,
	expiring INTEGER NOT NULL,
	correction BLOB,
	by_hand INTEGER NOT NULL,
	reviews INTEGER NOT NULL,
	review BLOB,
	account BLOB,
	currency TEXT NOT NULL,
	reserved INTEGER NOT NULL,
	cost INTEGER NOT NULL,
	charged INTEGER NOT NULL,
	cost_text TEXT NOT NULL,
	foreign_cost TEXT NOT NULL,
	money INTEGER NOT NULL,
	settled INTEGER NOT NULL,
	key_budget INTEGER NOT NULL,
	spend_day INTEGER NOT NULL,
	due_at INTEGER NOT NULL,
	queue INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	leased INTEGER NOT NULL,
	creates INTEGER NOT NULL,
	former_creates INTEGER NOT NULL,
	first_create_at INTEGER NOT NULL,
	create_credential BLOB,
	in_flight INTEGER NOT NULL,
	may_exist INTEGER NOT NULL,
	reads INTEGER NOT NULL,
	read_every_ns INTEGER NOT NULL,
	not_found INTEGER NOT NULL,
	not_found_at INTEGER NOT NULL,
	unreached INTEGER NOT NULL,
	deadline_reads INTEGER NOT NULL,
	last_read_at INTEGER NOT NULL,
	waiting_at INTEGER NOT NULL,
	work_failed INTEGER NOT NULL,
	work_done INTEGER NOT NULL,
	work_report BLOB,
	artifacts INTEGER NOT NULL,
	captures INTEGER NOT NULL,
	wants_links INTEGER NOT NULL,
	hold INTEGER NOT NULL,
	released_at INTEGER NOT NULL,
	read_line BLOB,
	read_line_at INTEGER NOT NULL,
	read_line_same BLOB,
	read_line_repeats INTEGER NOT NULL,
	kept INTEGER NOT NULL,
	erased_at INTEGER NOT NULL
) STRICT;
CREATE INDEX operations_by_tenant ON operations (tenant, id);
CREATE INDEX operations_by_correlation ON operations (correlation_id, id) WHERE correlation_id <> '';
CREATE INDEX operations_by_request ON operations (request_id, id) WHERE request_id <> '';
CREATE INDEX operations_by_upstream_request ON operations (upstream_request_id, id) WHERE upstream_request_id <> '';
-- What ended otherwise than well, which is rare, and what waits to be created, by
-- the end of its time.
CREATE INDEX operations_ended_badly ON operations (state, id) WHERE state >= 5;
CREATE INDEX operations_by_deadline ON operations (upstream, deadline, id) WHERE state = 1;
CREATE INDEX operations_due ON operations (upstream, tenant, queue, due_at, id) WHERE due_at < 9223372036854775807;
-- What lives: unfinished, or with money held. It answers lists, figures and
-- the sum of what is held without a look at the rows.
CREATE INDEX operations_open ON operations (id, tenant, state, created_at, account, reserved, money) WHERE state <= 3 OR money = 2;
CREATE INDEX operations_by_key_budget ON operations (api_key, currency) WHERE key_budget = 1;
CREATE INDEX operations_by_spend_day ON operations (upstream, spend_day, currency) WHERE spend_day > 0;
CREATE INDEX operations_leased ON operations (id) WHERE leased > 0;
-- What still holds content, by the classes of it, for the retention.
CREATE INDEX operations_kept ON operations (kept, id) WHERE kept > 0;
-- What waits for own workers.
CREATE INDEX operations_waiting ON operations (upstream, tenant, model, waiting_at, id) WHERE waiting_at > 0;

CREATE TABLE events (
	id BLOB NOT NULL PRIMARY KEY,
	direction INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	operation BLOB,
	type TEXT NOT NULL,
	at INTEGER NOT NULL,
	source TEXT NOT NULL,
	task TEXT NOT NULL,
	external_id TEXT NOT NULL,
	word TEXT NOT NULL,
	verdict INTEGER NOT NULL,
	reason TEXT NOT NULL,
	digest BLOB,
	headers TEXT NOT NULL,
	parked INTEGER NOT NULL,
	review BLOB,
	rejudged_at INTEGER NOT NULL,
	rejudged_verdict INTEGER NOT NULL,
	rejudged_reason TEXT NOT NULL,
	rejudged_by TEXT NOT NULL,
	inbox INTEGER NOT NULL,
	waiting INTEGER NOT NULL,
	troubled INTEGER NOT NULL,
	handled INTEGER NOT NULL,
	nudged_at INTEGER NOT NULL,
	reads INTEGER NOT NULL,
	version INTEGER NOT NULL,
	snapshot TEXT NOT NULL,
	result BLOB,
	traceparent TEXT NOT NULL,
	removed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_tenant ON events (tenant, id);
CREATE INDEX events_by_operation ON events (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX events_by_external_id ON events (external_id, id) WHERE external_id <> '';
CREATE INDEX events_by_source ON events (source, id) WHERE source <> '';
CREATE INDEX events_by_inbox ON events (inbox, id, tenant) WHERE inbox IN (1, 2, 4);
CREATE INDEX events_by_odd_verdict ON events (verdict, id) WHERE verdict >= 4;
-- Events of no operation that still hold content: those age by themselves.
CREATE INDEX events_kept ON events (id) WHERE operation IS NULL AND removed_at = 0;
CREATE INDEX events_parked ON events (source, task, at, id) WHERE parked = 1;

CREATE TABLE payloads (
	owner BLOB NOT NULL,
	kind INTEGER NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (owner, kind)
) STRICT;

CREATE TABLE history (
	operation BLOB NOT NULL,
	at INTEGER NOT NULL,
	id BLOB NOT NULL,
	kind TEXT NOT NULL,
	verdict INTEGER NOT NULL,
	reason TEXT NOT NULL,
	event BLOB,
	version INTEGER NOT NULL,
	state INTEGER NOT NULL,
	actor TEXT NOT NULL,
	detail TEXT NOT NULL,
	repeats INTEGER NOT NULL,
	last_at INTEGER NOT NULL,
	PRIMARY KEY (operation, at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE reviews (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	reason INTEGER NOT NULL,
	operation BLOB,
	event BLOB,
	endpoint BLOB,
	delivery BLOB,
	source TEXT NOT NULL,
	owner TEXT NOT NULL,
	detail TEXT NOT NULL,
	reported TEXT NOT NULL,
	opened_at INTEGER NOT NULL,
	closed_at INTEGER NOT NULL,
	decision TEXT NOT NULL,
	note TEXT NOT NULL,
	decided_by TEXT NOT NULL,
	notes TEXT NOT NULL
) STRICT;
CREATE INDEX reviews_by_tenant ON reviews (tenant, id);
CREATE INDEX reviews_by_operation ON reviews (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX reviews_open ON reviews (id, tenant, reason) WHERE closed_at = 0;

-- Money.

CREATE TABLE accounts (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	currency TEXT NOT NULL,
	credited INTEGER NOT NULL,
	charged INTEGER NOT NULL,
	reserved INTEGER NOT NULL,
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_by_tenant ON accounts (tenant, id);

CREATE TABLE budgets (
	kind INTEGER NOT NULL,
	name TEXT NOT NULL,
	currency TEXT NOT NULL,
	day INTEGER NOT NULL,
	used INTEGER NOT NULL,
	PRIMARY KEY (kind, name, currency, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
	account BLOB NOT NULL,
	id BLOB NOT NULL,
	tenant TEXT NOT NULL,
	operation BLOB,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	from_bucket TEXT NOT NULL,
	to_bucket TEXT NOT NULL,
	amount INTEGER NOT NULL,
	actor TEXT NOT NULL,
	note TEXT NOT NULL,
	correction BLOB,
	PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_by_operation ON entries (operation) WHERE operation IS NOT NULL;

-- Deliveries.

CREATE TABLE endpoints (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	kind INTEGER NOT NULL,
	api_key BLOB,
	url TEXT NOT NULL,
	types TEXT NOT NULL,
	scheme TEXT NOT NULL,
	description TEXT NOT NULL,
	owner TEXT NOT NULL,
	secret TEXT NOT NULL,
	former_secret TEXT NOT NULL,
	former_until INTEGER NOT NULL,
	public_key TEXT NOT NULL,
	policy TEXT NOT NULL,
	content TEXT NOT NULL,
	complete_within_ns INTEGER NOT NULL,
	version INTEGER NOT NULL,
	disabled INTEGER NOT NULL,
	disabled_reason TEXT NOT NULL,
	enabled_at INTEGER NOT NULL,
	dead_letter BLOB,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	deleted_at INTEGER NOT NULL,
	unused_at INTEGER NOT NULL
) STRICT;
CREATE INDEX endpoints_by_tenant ON endpoints (tenant, kind, id) WHERE deleted_at = 0;
CREATE INDEX endpoints_by_key ON endpoints (api_key, id) WHERE deleted_at = 0 AND api_key IS NOT NULL;
-- How many there are.
CREATE INDEX endpoints_disabled ON endpoints (id) WHERE disabled = 1 AND deleted_at = 0;

CREATE TABLE queues (
	kind INTEGER NOT NULL,
	upstream TEXT NOT NULL,
	tenant TEXT NOT NULL,
	endpoint BLOB NOT NULL,
	next_due INTEGER NOT NULL,
	paused_until INTEGER NOT NULL,
	pause_reason TEXT NOT NULL,
	sequence INTEGER NOT NULL,
	failures INTEGER NOT NULL,
	ready INTEGER NOT NULL GENERATED ALWAYS AS (max(next_due, paused_until)) VIRTUAL,
	PRIMARY KEY (kind, upstream, tenant, endpoint)
) STRICT, WITHOUT ROWID;
CREATE INDEX queues_ready ON queues (kind, upstream, ready, tenant, endpoint);

CREATE TABLE deliveries (
	id BLOB NOT NULL PRIMARY KEY,
	event BLOB,
	endpoint BLOB,
	operation BLOB,
	tenant TEXT NOT NULL,
	state INTEGER NOT NULL,
	sequence INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	leased INTEGER NOT NULL,
	due_at INTEGER NOT NULL,
	first_due_at INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL,
	last_status INTEGER NOT NULL,
	last_error TEXT NOT NULL,
	reason TEXT NOT NULL,
	body_kept INTEGER NOT NULL,
	replay INTEGER NOT NULL,
	inbound INTEGER NOT NULL,
	complete_by INTEGER NOT NULL,
	overdue INTEGER NOT NULL,
	review BLOB,
	completed_at INTEGER NOT NULL,
	completed_by TEXT NOT NULL,
	discarded INTEGER NOT NULL,
	replay_by TEXT NOT NULL,
	forced INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_tenant ON deliveries (tenant, id);
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint, id);
CREATE INDEX deliveries_by_event ON deliveries (event, id);
CREATE INDEX deliveries_by_operation ON deliveries (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX deliveries_by_sequence ON deliveries (endpoint, sequence) WHERE sequence > 0;
-- What is still to be sent, oldest due first, with its state for the figures.
CREATE INDEX deliveries_due ON deliveries (endpoint, due_at, id, state) WHERE due_at < 9223372036854775807 OR state <= 2;
CREATE INDEX deliveries_dead ON deliveries (id, tenant) WHERE state = 4;
CREATE INDEX deliveries_leased ON deliveries (id) WHERE leased = 1;
CREATE INDEX deliveries_forced ON deliveries (due_at, id) WHERE forced = 1;

CREATE TABLE replays (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	actor TEXT NOT NULL,
	kind INTEGER NOT NULL,
	endpoint BLOB,
	event BLOB,
	operation BLOB,
	delivery_state INTEGER NOT NULL,
	source TEXT NOT NULL,
	verdict INTEGER NOT NULL,
	type TEXT NOT NULL,
	task TEXT NOT NULL,
	from_at INTEGER NOT NULL,
	until_at INTEGER NOT NULL,
	dry_run INTEGER NOT NULL,
	force INTEGER NOT NULL,
	rate INTEGER NOT NULL,
	state INTEGER NOT NULL,
	counted INTEGER NOT NULL,
	after BLOB,
	total INTEGER NOT NULL,
	done INTEGER NOT NULL,
	outcomes TEXT NOT NULL,
	due_at INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	leased INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL
) STRICT;
CREATE INDEX replays_by_tenant ON replays (tenant, id);
CREATE INDEX replays_due ON replays (due_at, id) WHERE due_at < 9223372036854775807;

-- The links themselves are payloads.
CREATE TABLE artifacts (
	id BLOB NOT NULL PRIMARY KEY,
	operation BLOB,
	tenant TEXT NOT NULL,
	upstream TEXT NOT NULL,
	number INTEGER NOT NULL,
	state INTEGER NOT NULL,
	link BLOB,
	link_digest BLOB,
	host TEXT NOT NULL,
	expires_at INTEGER NOT NULL,
	ends_at INTEGER NOT NULL,
	content_type TEXT NOT NULL,
	filename TEXT NOT NULL,
	size INTEGER NOT NULL,
	sha256 BLOB,
	stored INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	captured_at INTEGER NOT NULL,
	due_at INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	leased INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	mismatches INTEGER NOT NULL,
	waiting INTEGER NOT NULL,
	fresh INTEGER NOT NULL,
	last_error TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_operation ON artifacts (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX artifacts_due ON artifacts (ends_at, id, due_at, host, tenant) WHERE due_at < 9223372036854775807;
CREATE INDEX artifacts_leased ON artifacts (id) WHERE leased = 1;

CREATE TABLE attempts (
	delivery BLOB NOT NULL,
	id BLOB NOT NULL,
	number INTEGER NOT NULL,
	at INTEGER NOT NULL,
	duration_ns INTEGER NOT NULL,
	status INTEGER NOT NULL,
	error TEXT NOT NULL,
	excerpt TEXT NOT NULL,
	replay INTEGER NOT NULL,
	actor TEXT NOT NULL,
	target TEXT NOT NULL,
	target_digest TEXT NOT NULL,
	PRIMARY KEY (delivery, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audits (
	id BLOB NOT NULL PRIMARY KEY,
	tenant TEXT NOT NULL,
	at INTEGER NOT NULL,
	actor TEXT NOT NULL,
	action TEXT NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audits_by_action ON audits (action, id);
CREATE INDEX audits_by_actor ON audits (actor, id);
CREATE INDEX audits_by_subject ON audits (subject, id);
CREATE INDEX audits_by_tenant ON audits (tenant, id);

CREATE TABLE audit_seals (
	number INTEGER NOT NULL PRIMARY KEY,
	last BLOB,
	lines INTEGER NOT NULL,
	sealed_at INTEGER NOT NULL,
	mac BLOB,
	removal BLOB
) STRICT, WITHOUT ROWID;

-- The latest batches, as a ring: slot is a batch's number modulo the size.
CREATE TABLE batches (
	slot INTEGER NOT NULL PRIMARY KEY,
	number INTEGER NOT NULL,
	id BLOB NOT NULL
) STRICT;
