package cli

import "time"

const description = `Pawl keeps asynchronous jobs from slipping: it creates each job once at the provider, counts each callback once, settles money once, and tells you through signed webhooks.

Start a server with "pawl serve", then hand it a job with "pawl op submit". "pawl demo" shows everything without any provider.

Exit status: 0 done, 1 refused or failed, 2 usage, 3 the server did not answer.`

// commands is the command line; the tags are its grammar and its help.
type commands struct {
	connection

	Serve    serveCmd    `cmd:"" group:"run" help:"Run a node: API, inbound hooks, workers, deliveries."`
	Demo     demoCmd     `cmd:"" group:"run" help:"Run jobs against a provider that misbehaves, and show the books."`
	Sim      simCmd      `cmd:"" group:"run" help:"Run a simulated provider that misbehaves, for a node to talk to."`
	Exercise exerciseCmd `cmd:"" group:"run" help:"Run the offline recovery exercise, or check its receipts."`
	Simulate simulateCmd `cmd:"" group:"run" help:"Run whole life cycles with faults in virtual time, from seeds, and check them."`
	Torture  tortureCmd  `cmd:"" group:"run" help:"Kill real nodes under load, and check that nothing was lost."`

	Op       opCmd       `cmd:"" group:"api" help:"Operations: submit, follow and decide jobs."`
	Artifact artifactCmd `cmd:"" group:"api" help:"Artifacts: the files of results, saved."`
	Endpoint endpointCmd `cmd:"" group:"api" help:"Endpoints: where events are delivered to."`
	Delivery deliveryCmd `cmd:"" group:"api" help:"Deliveries: events on their way, and dead letters."`
	Replay   replayCmd   `cmd:"" group:"api" help:"Replays: many deliveries or events again, as a job of the server."`
	Event    eventCmd    `cmd:"" group:"api" help:"Events, inbound and outbound."`
	Source   sourceCmd   `cmd:"" group:"api" help:"Sources of inbound events, and what was refused."`
	Review   reviewCmd   `cmd:"" group:"api" help:"Reviews: what a person must decide."`
	Account  accountCmd  `cmd:"" group:"api" help:"Accounts: credit, reservations and the journal."`
	Key      keyCmd      `cmd:"" group:"api" help:"API keys."`
	Tenant   tenantCmd   `cmd:"" group:"api" help:"Tenants."`
	Nodes    nodesCmd    `cmd:"" group:"api" help:"Who serves the ledger, and what each holds."`
	Status   statusCmd   `cmd:"" group:"api" help:"How the server is: what needs a person, and the figures."`
	Upstream upstreamCmd `cmd:"" group:"api" help:"Upstreams: the configured providers."`
	Work     workCmd     `cmd:"" group:"api" help:"Work: what an own worker leases, does and reports."`

	Erase  eraseCmd  `cmd:"" group:"api" help:"Erase what an operation or a tenant holds; the ledger's facts stay."`
	Audit  auditCmd  `cmd:"" group:"api" help:"The audit: what was done by whom."`
	Whoami whoamiCmd `cmd:"" group:"api" help:"Show the API key that is used."`

	Listen  listenCmd  `cmd:"" group:"api" help:"Have events posted to a URL on this machine; no public address is needed."`
	Trigger triggerCmd `cmd:"" group:"api" help:"Send an example event of a type to endpoints."`

	Reconcile reconcileCmd `cmd:"" group:"api" help:"Ask upstreams now what became of old unfinished operations."`

	Doctor     doctorCmd     `cmd:"" group:"local" help:"Look at what a node stands on: configuration, clock, disk, database, ports, names, keys."`
	Ledger     ledgerCmd     `cmd:"" group:"local" help:"Check a ledger on disk."`
	Backup     backupCmd     `cmd:"" group:"local" help:"Write a checked backup of a ledger in SQLite, while it is served."`
	Restore    restoreCmd    `cmd:"" group:"local" help:"Bring a ledger back from a backup, so that no job is created twice."`
	Migrate    migrateCmd    `cmd:"" group:"local" help:"The schema of a ledger: what it has, what is pending, bring it up."`
	Copy       copyCmd       `cmd:"" group:"local" help:"Copy a whole ledger from SQLite to PostgreSQL, or back."`
	Verify     verifyCmd     `cmd:"" group:"local" help:"Verify a webhook that was received."`
	Sign       signCmd       `cmd:"" group:"local" help:"Sign a webhook."`
	Completion completionCmd `cmd:"" group:"local" help:"Print the script that completes commands in a shell."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" help:"Tell a shell's script what may come next."`
	Version    versionCmd    `cmd:"" group:"local" help:"Show the version."`
}

// connection is how a server is found; see [session.connect].
type connection struct {
	Server   string        `group:"flags" placeholder:"URL" help:"Server to talk to; else $$PAWL_SERVER, else ${server}."`
	Key      string        `group:"flags" placeholder:"KEY" help:"API key; else $$PAWL_KEY (which other users of the machine cannot see), else, for a server on this machine, the one in ${keyfile}."`
	JSON     bool          `group:"flags" name:"json" help:"Print JSON instead of text: the API's own, unchanged."`
	Why      string        `group:"flags" placeholder:"TEXT" help:"Why it is done: goes into the audit, beside the key."`
	Patience time.Duration `group:"flags" default:"30s" help:"Longest wait for one answer of the server."`
}

const (
	defaultServer  = "http://127.0.0.1:8080"
	defaultData    = "./pawl-data"
	defaultKeyFile = defaultData + "/admin.key"
)

// listing is the part that all lists share.
type listing struct {
	exporting
	Tenant    string `help:"Of this tenant (keys with scope admin see all)." placeholder:"NAME"`
	PageSize  int    `help:"Rows to show at most." default:"50"`
	PageToken string `help:"Where to go on: the token that the page before ended with." placeholder:"TOKEN"`
}
