# Everything here runs on a machine with Go, a C compiler (for the race
# detector of the tests only), Node with npm and Python (for tests against other
# implementations). A PostgreSQL for the tests is found, installed or started by
# the tests themselves (internal/pgtest).

.PHONY: build test check fmt bench demo interop mutate fuzz large pages

build: ## the binary, without cgo
	CGO_ENABLED=0 go build -trimpath -o bin/pawl ./cmd/pawl

# SQLite itself, translated to Go, is one thread's work: watching it for races
# finds nothing and takes most of the time.
UNWATCHED = github.com/ncruces/go-sqlite3-wasm/v6/...

test: interop ## every test
	go run ./internal/pgtest/withpostgres go test -race -gcflags=$(UNWATCHED)=-race=false -timeout 25m ./...

interop: interop/node/node_modules/.package-lock.json

interop/node/node_modules/.package-lock.json: interop/node/package-lock.json
	cd interop/node && npm ci --no-audit --no-fund --silent

check: ## formatting and static checks
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go mod tidy -diff
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fmt:
	gofmt -w .

bench: ## the figures of docs/performance.md
	go run ./bench

LARGE ?= 2048

large: ## capture a file of LARGE MiB and print how long that takes, and the memory
	go test ./internal/capture -run TestLargeFileInLittleMemory -count=1 -v -timeout 30m -large-mib $(LARGE)

FUZZTIME ?= 30s
FUZZ ?= ./...

fuzz: ## every fuzz target of FUZZ for FUZZTIME each (docs/fuzzing.md)
	./.ci/fuzz $(FUZZTIME) $(FUZZ)

mutate: ## break the program one line at a time; every break must be noticed
	go run ./mutate

SHOTS ?= /tmp/pawl-pages

pages: ## a picture of every page of the console, in light, dark and narrow, into SHOTS
	go test ./internal/browser -run TestConsole -count=1 -timeout 20m -args -screenshots $(SHOTS)

demo:
	go run ./cmd/pawl demo
