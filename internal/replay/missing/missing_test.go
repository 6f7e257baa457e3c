package missing

import (
	"fmt"
	"testing"
)

func TestNamesArePathsIdentifiersAndLongNumbers(t *testing.T) {
	got := fmt.Sprint(Names(`{"cmd":"cd /srv/app && grep -n \"orderTotal\" cart.go\nid 20260105 short 1234 a.b ordinary"}`))
	if want := "[20260105 cart.go orderTotal srv/app]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAListOfNamesRetellsNothing(t *testing.T) {
	const original = `"see shop/cart.go for the sum of prices\nand order_total too\n"`
	for written, want := range map[string]bool{
		`"- see shop/cart.go for the sum\n"`: true, `"names: shop/cart.go, order_total"`: false, `"- the sum of prices"`: false,
	} {
		if got := Retold("shop/cart.go", Lines(written), original); got != want {
			t.Errorf("%s: %t", written, got)
		}
	}
}
