package bench

import "slices"

// budgets are the ratios to the bare proxy that p50 may have, over one connection, by size as in sizes.
func budgets() map[Kind]map[string][]float64 {
	return map[Kind]map[string][]float64{
		Known:     {nameEmbedded: {7.5, 4.5, 4.5, 4}, nameRedis: {12, 9, 5, 4.5}},
		FirstSeen: {nameEmbedded: {13, 20, 45, 40}, nameRedis: {20, 28, 65, 55}},
	}
}

// cpuBudgets are the ratios that the processor time of a request may have, known sessions over eight connections.
func cpuBudgets() []float64 { return []float64{14, 12, 8, 9} }

const cpuConns = 8

// budgetOf gives the budget of p50; 0: there is none.
func budgetOf(kind Kind, name string, size int) float64 {
	return bySize(budgets()[kind][name], size)
}

// cpuBudgetOf gives the budget of processor time; 0: there is none.
func cpuBudgetOf(c Cell, name string) float64 {
	if c.Kind != Known || c.Conns != cpuConns || name != nameEmbedded && name != nameRedis {
		return 0
	}
	return bySize(cpuBudgets(), c.Size)
}

func bySize(of []float64, size int) float64 {
	if i := slices.Index(sizes(), size); i >= 0 && i < len(of) {
		return of[i]
	}
	return 0
}
