package envelope

import "flexd/internal/flex"

// Storage is what one battery may draw and give, all energies in it but what is drawn and given. It has no need at the end.
type Storage struct {
	Stored, Least, Most Joules // now; and between what it may be
	Power               flex.Watts
	Efficiency          float64 // of charging, and of giving
	Charge, Give        []int64 // seconds of each slot in which it may
}

// StorageBounds are a battery's bounds of windows. Its zero value has none.
type StorageBounds struct {
	storage           *Storage
	charge, discharge []int64 // seconds in the first slots: of none, of one, and so on
}

// Bounds prepares a battery's bounds.
func (s *Storage) Bounds() StorageBounds {
	b := StorageBounds{
		storage:   s,
		charge:    make([]int64, len(s.Charge)+1),
		discharge: make([]int64, len(s.Charge)+1),
	}
	for t := range s.Charge {
		b.charge[t+1] = b.charge[t] + s.Charge[t]
		b.discharge[t+1] = b.discharge[t] + s.Give[t]
	}

	return b
}

// Window returns the least and the most that the battery can draw from one slot to before another, the least below zero where it
// can give. To draw the most it gives before the window what it can, and charges in it; to give the most it charges before. Each
// is exact for a battery that may move at any power up to its own, and in a window only charges or only gives: what it could
// waste by both is left out.
func (b *StorageBounds) Window(from, to int) (least, most Joules) {
	s := b.storage
	power := float64(s.Power)
	low, high := float64(s.Stored), float64(s.Stored)
	low = min(low, max(float64(s.Least), low-power*float64(b.discharge[from])/s.Efficiency))
	high = max(high, min(float64(s.Most), high+power*float64(b.charge[from])*s.Efficiency))

	room := max(0, float64(s.Most)-low) / s.Efficiency
	usable := max(0, high-float64(s.Least)) * s.Efficiency
	draws := min(room, power*float64(b.charge[to]-b.charge[from]))
	discharged := min(usable, power*float64(b.discharge[to]-b.discharge[from]))

	return -Joules(discharged), Joules(draws)
}
