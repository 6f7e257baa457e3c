package session

import "testing"

func TestBranches(t *testing.T) {
	if PurposeTitle.Branches() || PurposeMain.Branches() || !PurposeCompaction.Branches() || !PurposeSuggestion.Branches() || PurposeProbe.Branches() {
		t.Error("what branches is wrong")
	}
}
