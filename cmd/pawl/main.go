// Command pawl is the whole of Pawl: the server and everything that talks to
// it. Run "pawl --help".
package main

import (
	"context"
	"os"

	"github.com/pawlhq/pawl/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.System()))
}
