// Package storetest is the conformance suite of the store's drivers: the
// contract of [store.Driver] row by row, each answer compared with what is
// expected and with the memory driver's, and the property that any sequence of
// commands gives the same rows and answers however it is cut into batches.
package storetest

import (
	"testing"

	"github.com/pawlhq/pawl/internal/store"
)

// Open gives a new and empty driver. The suite closes it; what else is to be
// undone belongs in t.Cleanup.
type Open func(t *testing.T) store.Driver

// Run runs the whole suite over a driver.
func Run(t *testing.T, open Open) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"RoundTrip", testRoundTrip}, {"Absent", testAbsent}, {"Logs", testLogs}, {"Story", testStory}, {"Look", testLook}, {"Late", testLate},
		{"OwnWrites", testOwnWrites}, {"ChangesOnly", testChangesOnly},
		{"Rollback", testRollback}, {"Committed", testCommitted}, {"Closed", testClosed},
		{"Follow", testFollow}, {"DueWork", testDueWork}, {"DueDeliveries", testDueDeliveries},
		{"EndpointSets", testEndpointSets}, {"Parked", testParked}, {"OpenReviews", testOpenReviews},
		{"Lists", testLists}, {"Metadata", testMetadata}, {"Paging", testPaging},
		{"Ready", testReady}, {"Leased", testLeased}, {"ParkedSweep", testParkedSweep},
		{"DueArtifacts", testDueArtifacts}, {"ArtifactSets", testArtifactSets},
		{"Misqueued", testMisqueued}, {"WaitedFor", testWaitedFor}, {"WorkLines", testWorkLines}, {"Stats", testStats},
		{"OperationFacts", testOperationFacts}, {"AccountFacts", testAccountFacts}, {"BudgetFacts", testBudgetFacts}, {"Versions", testVersions}, {"Feed", testFeed}, {"Replays", testReplays},
		{"EndpointFacts", testEndpointFacts}, {"LooseFacts", testLooseFacts},
		{"Aging", testAging}, {"Removed", testRemoved},
		{"Cuts", testCuts},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open) })
	}
}
