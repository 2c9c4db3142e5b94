-- +goose Up

-- Ids are uuid, NULL for none outside of keys; times are timestamptz, 'epoch'
-- for not set and 'infinity' for never; money is in units of 10^-9. Text is in
-- byte order whatever the database's own is, and holds what PostgreSQL's text
-- cannot as an escape (words.go). Every column but a key has a default: rows
-- are claimed by their key alone, and an older program leaves out what it does
-- not know. Nothing refers to anything by a foreign key: rows that belong
-- together are written by one decision, and `pawl ledger check` finds what
-- hangs loose.

-- Claims: narrow tables, looked up by their key.

CREATE TABLE idempotency_keys (
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	value text COLLATE "C" NOT NULL DEFAULT '',
	api_key uuid,
	purpose text COLLATE "C" NOT NULL DEFAULT '',
	operation uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
	fingerprint bytea,
	expires_at timestamptz NOT NULL DEFAULT 'epoch',
	PRIMARY KEY (tenant, value)
);
CREATE INDEX idempotency_keys_by_operation ON idempotency_keys (operation);

CREATE TABLE correlations (
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	value text COLLATE "C" NOT NULL DEFAULT '',
	api_key uuid,
	operation uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
	work bytea,
	PRIMARY KEY (tenant, value)
);

CREATE TABLE event_keys (
	source text COLLATE "C" NOT NULL DEFAULT '',
	task text COLLATE "C" NOT NULL DEFAULT '',
	external_id text COLLATE "C" NOT NULL DEFAULT '',
	event uuid,
	digest bytea,
	word text COLLATE "C" NOT NULL DEFAULT '',
	repeats bigint NOT NULL DEFAULT 0,
	differs boolean NOT NULL DEFAULT false,
	PRIMARY KEY (source, task, external_id)
);
CREATE INDEX event_keys_by_event ON event_keys (event);

CREATE TABLE tasks (
	upstream text COLLATE "C" NOT NULL DEFAULT '',
	task text COLLATE "C" NOT NULL DEFAULT '',
	operation uuid,
	claimed_at timestamptz NOT NULL DEFAULT 'epoch',
	PRIMARY KEY (upstream, task)
);
CREATE INDEX tasks_by_operation ON tasks (operation) WHERE operation IS NOT NULL;

CREATE TABLE sources (
	name text COLLATE "C" NOT NULL DEFAULT '' PRIMARY KEY,
	parked bigint NOT NULL DEFAULT 0,
	unknown_types bigint NOT NULL DEFAULT 0
);

CREATE TABLE unknown_types (
	source text COLLATE "C" NOT NULL DEFAULT '',
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	review uuid,
	events bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (source, tenant)
);

CREATE TABLE tenants (
	name text COLLATE "C" NOT NULL DEFAULT '' PRIMARY KEY,
	account uuid,
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	erase_before timestamptz NOT NULL DEFAULT 'epoch'
);

CREATE TABLE api_keys (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	name text COLLATE "C" NOT NULL DEFAULT '',
	hash bytea,
	scopes smallint NOT NULL DEFAULT 0,
	webhook_secret text COLLATE "C" NOT NULL DEFAULT '',
	former_secret text COLLATE "C" NOT NULL DEFAULT '',
	former_until timestamptz NOT NULL DEFAULT 'epoch',
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	expires_at timestamptz NOT NULL DEFAULT 'epoch',
	revoked_at timestamptz NOT NULL DEFAULT 'epoch',
	former_hash bytea,
	former_hash_until timestamptz NOT NULL DEFAULT 'epoch',
	last_used_at timestamptz NOT NULL DEFAULT 'epoch',
	version bigint NOT NULL DEFAULT 0,
	rate bigint NOT NULL DEFAULT 0,
	burst integer NOT NULL DEFAULT 0,
	budget bigint NOT NULL DEFAULT 0,
	budget_currency text COLLATE "C" NOT NULL DEFAULT '',
	upstreams text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX api_keys_by_hash ON api_keys (hash);
CREATE INDEX api_keys_by_former_hash ON api_keys (former_hash) WHERE former_hash IS NOT NULL;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant, id);

CREATE TABLE wrapping_keys (
	name text COLLATE "C" NOT NULL DEFAULT '' PRIMARY KEY,
	root text COLLATE "C" NOT NULL DEFAULT '',
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	retired_at timestamptz NOT NULL DEFAULT 'epoch'
);

-- Operations and what hangs on one of them.

CREATE TABLE operations (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	api_key uuid,
	upstream text COLLATE "C" NOT NULL DEFAULT '',
	model text COLLATE "C" NOT NULL DEFAULT '',
	asked_model text COLLATE "C" NOT NULL DEFAULT '',
	request_id text COLLATE "C" NOT NULL DEFAULT '',
	traceparent text COLLATE "C" NOT NULL DEFAULT '',
	adapter text COLLATE "C" NOT NULL DEFAULT '',
	owner text COLLATE "C" NOT NULL DEFAULT '',
	correlation_id text COLLATE "C" NOT NULL DEFAULT '',
	callback_url text COLLATE "C" NOT NULL DEFAULT '',
	callback uuid,
	retry_of uuid,
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	deadline timestamptz NOT NULL DEFAULT 'epoch',
	state smallint NOT NULL DEFAULT 0,
	version bigint NOT NULL DEFAULT 0,
	event_at timestamptz NOT NULL DEFAULT 'epoch',
	submitted_at timestamptz NOT NULL DEFAULT 'epoch',
	updated_at timestamptz NOT NULL DEFAULT 'epoch',
	finished_at timestamptz NOT NULL DEFAULT 'epoch',
	task text COLLATE "C" NOT NULL DEFAULT '',
	upstream_state text COLLATE "C" NOT NULL DEFAULT '',
	upstream_version bigint NOT NULL DEFAULT 0,
	upstream_request_id text COLLATE "C" NOT NULL DEFAULT '',
	progress integer NOT NULL DEFAULT 0,
	result uuid,
	error_code text COLLATE "C" NOT NULL DEFAULT '',
	error_word text COLLATE "C" NOT NULL DEFAULT '',
	error_message text COLLATE "C" NOT NULL DEFAULT '',
	cancel_requested_at timestamptz NOT NULL DEFAULT 'epoch',
	cancel_confirmed boolean NOT NULL DEFAULT false,
	cancel_due_at timestamptz NOT NULL DEFAULT 'epoch',
	cancels integer NOT NULL DEFAULT 0,
	expiring boolean NOT NULL DEFAULT false,
	correction uuid,
	by_hand boolean NOT NULL DEFAULT false,
	reviews bigint NOT NULL DEFAULT 0,
	review uuid,
	account uuid,
	currency text COLLATE "C" NOT NULL DEFAULT '',
	reserved bigint NOT NULL DEFAULT 0,
	cost bigint NOT NULL DEFAULT 0,
	charged bigint NOT NULL DEFAULT 0,
	cost_text text COLLATE "C" NOT NULL DEFAULT '',
	foreign_cost text COLLATE "C" NOT NULL DEFAULT '',
	money smallint NOT NULL DEFAULT 0,
	settled boolean NOT NULL DEFAULT false,
	key_budget boolean NOT NULL DEFAULT false,
	spend_day bigint NOT NULL DEFAULT 0,
	due_at timestamptz NOT NULL DEFAULT 'epoch',
	queue smallint NOT NULL DEFAULT 0,
	lease bigint NOT NULL DEFAULT 0,
	leased smallint NOT NULL DEFAULT 0,
	creates integer NOT NULL DEFAULT 0,
	former_creates integer NOT NULL DEFAULT 0,
	first_create_at timestamptz NOT NULL DEFAULT 'epoch',
	create_credential bytea,
	in_flight boolean NOT NULL DEFAULT false,
	may_exist boolean NOT NULL DEFAULT false,
	reads integer NOT NULL DEFAULT 0,
	read_every_ns bigint NOT NULL DEFAULT 0,
	not_found integer NOT NULL DEFAULT 0,
	not_found_at timestamptz NOT NULL DEFAULT 'epoch',
	unreached integer NOT NULL DEFAULT 0,
	deadline_reads integer NOT NULL DEFAULT 0,
	last_read_at timestamptz NOT NULL DEFAULT 'epoch',
	waiting_at timestamptz NOT NULL DEFAULT 'epoch',
	work_failed bigint NOT NULL DEFAULT 0,
	work_done boolean NOT NULL DEFAULT false,
	work_report bytea,
	artifacts integer NOT NULL DEFAULT 0,
	captures smallint NOT NULL DEFAULT 0,
	wants_links boolean NOT NULL DEFAULT false,
	hold boolean NOT NULL DEFAULT false,
	released_at timestamptz NOT NULL DEFAULT 'epoch',
	read_line uuid,
	read_line_at timestamptz NOT NULL DEFAULT 'epoch',
	read_line_same bytea,
	read_line_repeats bigint NOT NULL DEFAULT 0,
	kept smallint NOT NULL DEFAULT 0,
	erased_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX operations_by_tenant ON operations (tenant, id);
CREATE INDEX operations_by_correlation ON operations (correlation_id, id) WHERE correlation_id <> '';
CREATE INDEX operations_by_request ON operations (request_id, id) WHERE request_id <> '';
CREATE INDEX operations_by_upstream_request ON operations (upstream_request_id, id) WHERE upstream_request_id <> '';
-- What ended otherwise than well, which is rare, and what waits to be created, by
-- the end of its time.
CREATE INDEX operations_ended_badly ON operations (state, id) WHERE state >= 5;
CREATE INDEX operations_by_deadline ON operations (upstream, deadline, id) WHERE state = 1;
CREATE INDEX operations_due ON operations (upstream, tenant, queue, due_at, id) WHERE due_at < 'infinity';
-- What lives: unfinished, or with money held. It answers lists, figures and
-- the sum of what is held without a look at the rows.
CREATE INDEX operations_open ON operations (id, tenant, state, created_at, account, reserved, money) WHERE state <= 3 OR money = 2;
CREATE INDEX operations_by_key_budget ON operations (api_key, currency) WHERE key_budget;
CREATE INDEX operations_by_spend_day ON operations (upstream, spend_day, currency) WHERE spend_day > 0;
-- What still holds content, by the classes of it, for the retention.
CREATE INDEX operations_kept ON operations (kept, id) WHERE kept > 0;
CREATE INDEX operations_leased ON operations (id) WHERE leased > 0;
-- What waits for own workers.
CREATE INDEX operations_waiting ON operations (upstream, tenant, model, waiting_at, id) WHERE waiting_at > 'epoch';

CREATE TABLE events (
	id uuid NOT NULL PRIMARY KEY,
	direction smallint NOT NULL DEFAULT 0,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	operation uuid,
	type text COLLATE "C" NOT NULL DEFAULT '',
	at timestamptz NOT NULL DEFAULT 'epoch',
	source text COLLATE "C" NOT NULL DEFAULT '',
	task text COLLATE "C" NOT NULL DEFAULT '',
	external_id text COLLATE "C" NOT NULL DEFAULT '',
	word text COLLATE "C" NOT NULL DEFAULT '',
	verdict smallint NOT NULL DEFAULT 0,
	reason text COLLATE "C" NOT NULL DEFAULT '',
	digest bytea,
	headers text COLLATE "C" NOT NULL DEFAULT '',
	parked boolean NOT NULL DEFAULT false,
	review uuid,
	rejudged_at timestamptz NOT NULL DEFAULT 'epoch',
	rejudged_verdict smallint NOT NULL DEFAULT 0,
	rejudged_reason text COLLATE "C" NOT NULL DEFAULT '',
	rejudged_by text COLLATE "C" NOT NULL DEFAULT '',
	inbox smallint NOT NULL DEFAULT 0,
	waiting integer NOT NULL DEFAULT 0,
	troubled integer NOT NULL DEFAULT 0,
	handled integer NOT NULL DEFAULT 0,
	nudged_at timestamptz NOT NULL DEFAULT 'epoch',
	reads boolean NOT NULL DEFAULT false,
	version bigint NOT NULL DEFAULT 0,
	snapshot text COLLATE "C" NOT NULL DEFAULT '',
	result uuid,
	traceparent text COLLATE "C" NOT NULL DEFAULT '',
	removed_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX events_by_tenant ON events (tenant, id);
CREATE INDEX events_by_operation ON events (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX events_by_external_id ON events (external_id, id) WHERE external_id <> '';
CREATE INDEX events_by_source ON events (source, id) WHERE source <> '';
CREATE INDEX events_by_inbox ON events (inbox, id, tenant) WHERE inbox IN (1, 2, 4);
CREATE INDEX events_by_odd_verdict ON events (verdict, id) WHERE verdict >= 4;
-- Events of no operation that still hold content: those age by themselves.
CREATE INDEX events_kept ON events (id) WHERE operation IS NULL AND removed_at = 'epoch';
CREATE INDEX events_parked ON events (source, task, at, id) WHERE parked;

-- Payloads, timelines and attempts are what grows. They are divided by the month
-- in which what they belong to was made, which its id begins with; a partition
-- that does not exist yet is stood in for by the default one.

CREATE TABLE payloads (
	owner uuid NOT NULL,
	kind smallint NOT NULL DEFAULT 0,
	body bytea NOT NULL DEFAULT '',
	PRIMARY KEY (owner, kind)
) PARTITION BY RANGE (owner);
CREATE TABLE payloads_default PARTITION OF payloads DEFAULT;

CREATE TABLE history (
	operation uuid NOT NULL,
	at timestamptz NOT NULL DEFAULT 'epoch',
	id uuid NOT NULL,
	kind text COLLATE "C" NOT NULL DEFAULT '',
	verdict smallint NOT NULL DEFAULT 0,
	reason text COLLATE "C" NOT NULL DEFAULT '',
	event uuid,
	version bigint NOT NULL DEFAULT 0,
	state smallint NOT NULL DEFAULT 0,
	actor text COLLATE "C" NOT NULL DEFAULT '',
	detail text COLLATE "C" NOT NULL DEFAULT '',
	repeats bigint NOT NULL DEFAULT 0,
	last_at timestamptz NOT NULL DEFAULT 'epoch',
	PRIMARY KEY (operation, at, id)
) PARTITION BY RANGE (operation);
CREATE TABLE history_default PARTITION OF history DEFAULT;

CREATE TABLE reviews (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	reason smallint NOT NULL DEFAULT 0,
	operation uuid,
	event uuid,
	endpoint uuid,
	delivery uuid,
	source text COLLATE "C" NOT NULL DEFAULT '',
	owner text COLLATE "C" NOT NULL DEFAULT '',
	detail text COLLATE "C" NOT NULL DEFAULT '',
	reported text COLLATE "C" NOT NULL DEFAULT '',
	opened_at timestamptz NOT NULL DEFAULT 'epoch',
	closed_at timestamptz NOT NULL DEFAULT 'epoch',
	decision text COLLATE "C" NOT NULL DEFAULT '',
	note text COLLATE "C" NOT NULL DEFAULT '',
	decided_by text COLLATE "C" NOT NULL DEFAULT '',
	notes text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX reviews_by_tenant ON reviews (tenant, id);
CREATE INDEX reviews_by_operation ON reviews (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX reviews_open ON reviews (id, tenant, reason) WHERE closed_at = 'epoch';

-- Money.

CREATE TABLE accounts (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	currency text COLLATE "C" NOT NULL DEFAULT '',
	credited bigint NOT NULL DEFAULT 0,
	charged bigint NOT NULL DEFAULT 0,
	reserved bigint NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX accounts_by_tenant ON accounts (tenant, id);

CREATE TABLE budgets (
	kind smallint NOT NULL DEFAULT 0,
	name text COLLATE "C" NOT NULL DEFAULT '',
	currency text COLLATE "C" NOT NULL DEFAULT '',
	day bigint NOT NULL DEFAULT 0,
	used bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (kind, name, currency, day)
);

CREATE TABLE entries (
	account uuid NOT NULL,
	id uuid NOT NULL,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	operation uuid,
	at timestamptz NOT NULL DEFAULT 'epoch',
	kind text COLLATE "C" NOT NULL DEFAULT '',
	from_bucket text COLLATE "C" NOT NULL DEFAULT '',
	to_bucket text COLLATE "C" NOT NULL DEFAULT '',
	amount bigint NOT NULL DEFAULT 0,
	actor text COLLATE "C" NOT NULL DEFAULT '',
	note text COLLATE "C" NOT NULL DEFAULT '',
	correction uuid,
	PRIMARY KEY (account, id)
);
CREATE INDEX entries_by_operation ON entries (operation) WHERE operation IS NOT NULL;

-- Deliveries.

CREATE TABLE endpoints (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	kind smallint NOT NULL DEFAULT 0,
	api_key uuid,
	url text COLLATE "C" NOT NULL DEFAULT '',
	types text COLLATE "C" NOT NULL DEFAULT '',
	scheme text COLLATE "C" NOT NULL DEFAULT '',
	description text COLLATE "C" NOT NULL DEFAULT '',
	owner text COLLATE "C" NOT NULL DEFAULT '',
	secret text COLLATE "C" NOT NULL DEFAULT '',
	former_secret text COLLATE "C" NOT NULL DEFAULT '',
	former_until timestamptz NOT NULL DEFAULT 'epoch',
	public_key text COLLATE "C" NOT NULL DEFAULT '',
	policy text COLLATE "C" NOT NULL DEFAULT '',
	content text COLLATE "C" NOT NULL DEFAULT '',
	complete_within_ns bigint NOT NULL DEFAULT 0,
	version bigint NOT NULL DEFAULT 0,
	disabled boolean NOT NULL DEFAULT false,
	disabled_reason text COLLATE "C" NOT NULL DEFAULT '',
	enabled_at timestamptz NOT NULL DEFAULT 'epoch',
	dead_letter uuid,
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	updated_at timestamptz NOT NULL DEFAULT 'epoch',
	deleted_at timestamptz NOT NULL DEFAULT 'epoch',
	unused_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX endpoints_by_tenant ON endpoints (tenant, kind, id) WHERE deleted_at = 'epoch';
CREATE INDEX endpoints_by_key ON endpoints (api_key, id) WHERE deleted_at = 'epoch' AND api_key IS NOT NULL;
-- How many there are.
CREATE INDEX endpoints_disabled ON endpoints (id) WHERE disabled AND deleted_at = 'epoch';

CREATE TABLE queues (
	kind smallint NOT NULL DEFAULT 0,
	upstream text COLLATE "C" NOT NULL DEFAULT '',
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	endpoint uuid NOT NULL,
	next_due timestamptz NOT NULL DEFAULT 'epoch',
	paused_until timestamptz NOT NULL DEFAULT 'epoch',
	pause_reason text COLLATE "C" NOT NULL DEFAULT '',
	sequence bigint NOT NULL DEFAULT 0,
	failures integer NOT NULL DEFAULT 0,
	ready timestamptz NOT NULL GENERATED ALWAYS AS (greatest(next_due, paused_until)) STORED,
	PRIMARY KEY (kind, upstream, tenant, endpoint)
);
CREATE INDEX queues_ready ON queues (kind, upstream, ready, tenant, endpoint);

CREATE TABLE deliveries (
	id uuid NOT NULL PRIMARY KEY,
	event uuid,
	endpoint uuid,
	operation uuid,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	state smallint NOT NULL DEFAULT 0,
	sequence bigint NOT NULL DEFAULT 0,
	attempts integer NOT NULL DEFAULT 0,
	tries integer NOT NULL DEFAULT 0,
	lease bigint NOT NULL DEFAULT 0,
	leased boolean NOT NULL DEFAULT false,
	due_at timestamptz NOT NULL DEFAULT 'epoch',
	first_due_at timestamptz NOT NULL DEFAULT 'epoch',
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	finished_at timestamptz NOT NULL DEFAULT 'epoch',
	last_status integer NOT NULL DEFAULT 0,
	last_error text COLLATE "C" NOT NULL DEFAULT '',
	reason text COLLATE "C" NOT NULL DEFAULT '',
	body_kept boolean NOT NULL DEFAULT false,
	replay boolean NOT NULL DEFAULT false,
	inbound boolean NOT NULL DEFAULT false,
	complete_by timestamptz NOT NULL DEFAULT 'epoch',
	overdue integer NOT NULL DEFAULT 0,
	review uuid,
	completed_at timestamptz NOT NULL DEFAULT 'epoch',
	completed_by text COLLATE "C" NOT NULL DEFAULT '',
	discarded boolean NOT NULL DEFAULT false,
	replay_by text COLLATE "C" NOT NULL DEFAULT '',
	forced boolean NOT NULL DEFAULT false
);
CREATE INDEX deliveries_by_tenant ON deliveries (tenant, id);
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint, id);
CREATE INDEX deliveries_by_event ON deliveries (event, id);
CREATE INDEX deliveries_by_operation ON deliveries (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX deliveries_by_sequence ON deliveries (endpoint, sequence) WHERE sequence > 0;
-- What is still to be sent, oldest due first, with its state for the figures.
CREATE INDEX deliveries_due ON deliveries (endpoint, due_at, id, state) WHERE due_at < 'infinity' OR state <= 2;
CREATE INDEX deliveries_dead ON deliveries (id, tenant) WHERE state = 4;
CREATE INDEX deliveries_leased ON deliveries (id) WHERE leased;
CREATE INDEX deliveries_forced ON deliveries (due_at, id) WHERE forced;

CREATE TABLE replays (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	actor text COLLATE "C" NOT NULL DEFAULT '',
	kind smallint NOT NULL DEFAULT 0,
	endpoint uuid,
	event uuid,
	operation uuid,
	delivery_state smallint NOT NULL DEFAULT 0,
	source text COLLATE "C" NOT NULL DEFAULT '',
	verdict smallint NOT NULL DEFAULT 0,
	type text COLLATE "C" NOT NULL DEFAULT '',
	task text COLLATE "C" NOT NULL DEFAULT '',
	from_at timestamptz NOT NULL DEFAULT 'epoch',
	until_at timestamptz NOT NULL DEFAULT 'epoch',
	dry_run boolean NOT NULL DEFAULT false,
	force boolean NOT NULL DEFAULT false,
	rate integer NOT NULL DEFAULT 0,
	state smallint NOT NULL DEFAULT 0,
	counted boolean NOT NULL DEFAULT false,
	after uuid,
	total bigint NOT NULL DEFAULT 0,
	done bigint NOT NULL DEFAULT 0,
	outcomes text COLLATE "C" NOT NULL DEFAULT '',
	due_at timestamptz NOT NULL DEFAULT 'epoch',
	lease bigint NOT NULL DEFAULT 0,
	leased boolean NOT NULL DEFAULT false,
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	updated_at timestamptz NOT NULL DEFAULT 'epoch',
	finished_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX replays_by_tenant ON replays (tenant, id);
CREATE INDEX replays_due ON replays (due_at, id) WHERE due_at < 'infinity';

-- The links themselves are payloads.
CREATE TABLE artifacts (
	id uuid NOT NULL PRIMARY KEY,
	operation uuid,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	upstream text COLLATE "C" NOT NULL DEFAULT '',
	number integer NOT NULL DEFAULT 0,
	state smallint NOT NULL DEFAULT 0,
	link uuid,
	link_digest bytea,
	host text COLLATE "C" NOT NULL DEFAULT '',
	expires_at timestamptz NOT NULL DEFAULT 'epoch',
	ends_at timestamptz NOT NULL DEFAULT 'epoch',
	content_type text COLLATE "C" NOT NULL DEFAULT '',
	filename text COLLATE "C" NOT NULL DEFAULT '',
	size bigint NOT NULL DEFAULT 0,
	sha256 bytea,
	stored bigint NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT 'epoch',
	captured_at timestamptz NOT NULL DEFAULT 'epoch',
	due_at timestamptz NOT NULL DEFAULT 'epoch',
	lease bigint NOT NULL DEFAULT 0,
	leased boolean NOT NULL DEFAULT false,
	attempts integer NOT NULL DEFAULT 0,
	tries integer NOT NULL DEFAULT 0,
	mismatches integer NOT NULL DEFAULT 0,
	waiting boolean NOT NULL DEFAULT false,
	fresh integer NOT NULL DEFAULT 0,
	last_error text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX artifacts_by_operation ON artifacts (operation, id) WHERE operation IS NOT NULL;
CREATE INDEX artifacts_due ON artifacts (ends_at, id, due_at, host, tenant) WHERE due_at < 'infinity';
CREATE INDEX artifacts_leased ON artifacts (id) WHERE leased;

CREATE TABLE attempts (
	delivery uuid NOT NULL,
	id uuid NOT NULL,
	number integer NOT NULL DEFAULT 0,
	at timestamptz NOT NULL DEFAULT 'epoch',
	duration_ns bigint NOT NULL DEFAULT 0,
	status integer NOT NULL DEFAULT 0,
	error text COLLATE "C" NOT NULL DEFAULT '',
	excerpt text COLLATE "C" NOT NULL DEFAULT '',
	replay boolean NOT NULL DEFAULT false,
	actor text COLLATE "C" NOT NULL DEFAULT '',
	target text COLLATE "C" NOT NULL DEFAULT '',
	target_digest text COLLATE "C" NOT NULL DEFAULT '',
	PRIMARY KEY (delivery, id)
) PARTITION BY RANGE (delivery);
CREATE TABLE attempts_default PARTITION OF attempts DEFAULT;

CREATE TABLE audits (
	id uuid NOT NULL PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL DEFAULT '',
	at timestamptz NOT NULL DEFAULT 'epoch',
	actor text COLLATE "C" NOT NULL DEFAULT '',
	action text COLLATE "C" NOT NULL DEFAULT '',
	subject text COLLATE "C" NOT NULL DEFAULT '',
	detail text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX audits_by_tenant ON audits (tenant, id);
CREATE INDEX audits_by_action ON audits (action, id);
CREATE INDEX audits_by_actor ON audits (actor, id);
CREATE INDEX audits_by_subject ON audits (subject, id);

CREATE TABLE audit_seals (
	number bigint NOT NULL PRIMARY KEY,
	last uuid,
	lines bigint NOT NULL DEFAULT 0,
	sealed_at timestamptz NOT NULL DEFAULT 'epoch',
	mac bytea,
	removal bytea
);

-- What the driver keeps for itself.

-- One row a tenant: who reads the tenant's set of endpoints holds it shared,
-- who adds to the set holds it alone.
CREATE TABLE endpoint_sets (
	tenant text COLLATE "C" NOT NULL PRIMARY KEY
);

-- The batches of the last hours. A lost one was asked for before it was
-- committed, and can no longer be.
CREATE TABLE batches (
	id uuid NOT NULL PRIMARY KEY,
	lost boolean NOT NULL DEFAULT false
);

-- The nodes that serve this ledger, as they last told of themselves. Nothing is
-- decided by it.
CREATE TABLE nodes (
	id uuid NOT NULL PRIMARY KEY,
	host text COLLATE "C" NOT NULL DEFAULT '',
	address text COLLATE "C" NOT NULL DEFAULT '',
	version text COLLATE "C" NOT NULL DEFAULT '',
	draining boolean NOT NULL DEFAULT false,
	lanes bigint NOT NULL DEFAULT 0,
	waiting bigint NOT NULL DEFAULT 0,
	creates bigint NOT NULL DEFAULT 0,
	reads bigint NOT NULL DEFAULT 0,
	deliveries bigint NOT NULL DEFAULT 0,
	captures bigint NOT NULL DEFAULT 0,
	started_at timestamptz NOT NULL DEFAULT 'epoch',
	seen_at timestamptz NOT NULL DEFAULT 'epoch'
);

-- Rows that are written again and again leave room on their page, so that a
-- change need not touch the indexes, and are cleaned up before they pile up.

ALTER TABLE operations SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE deliveries SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE artifacts SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE queues SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE accounts SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE budgets SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE sources SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE unknown_types SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE replays SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE tenants SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE nodes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE endpoint_sets SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE api_keys SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE idempotency_keys SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE event_keys SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE tasks SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE correlations SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
