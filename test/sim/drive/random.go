package drive

// dice are random numbers that depend on a seed and a purpose, not on earlier calls. A scenario without one of its
// faults otherwise takes the same course.
type dice uint64

// throwDice returns a number below n.
func (d dice) throwDice(what, n int) int {
	x := uint64(d) + uint64(what)*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return int(x % uint64(n))
}

// clusterSize returns the size of a random cluster, small ones more often.
func (d dice) clusterSize() (controlPlanes, workers int) {
	controlPlanes = []int{1, 1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7}[d.throwDice(1, 14)]
	workers = []int{0, 0, 1, 1, 2, 2, 3, 4}[d.throwDice(2, 8)]
	if d.throwDice(3, 50) == 0 {
		workers = d.throwDice(4, 21)
	}
	return controlPlanes, workers
}

// RandomWithPool returns a seed's scenario with one to three hosts for Machines. Half of its faults concern them.
func RandomWithPool(seed uint64) Scenario {
	s, d := Random(seed), dice(seed)
	s.Pool = 1 + d.throwDice(7, 3)
	hosts := s.ControlPlanes + s.Workers + s.Pool
	kinds := append(MachineKinds(), Settings)
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Host = d.throwDice(500+i, hosts); d.throwDice(600+i, 2) == 0 {
			f.Kind = kinds[d.throwDice(700+i, len(kinds)+1)%len(kinds)] // claims twice as often
		}
	}
	return s
}

// Random returns a seed's scenario with up to seven control-plane hosts, twenty workers and six faults.
func Random(seed uint64) Scenario {
	d := dice(seed)
	s := Scenario{Seed: seed, Start: Starts()[d.throwDice(5, len(Starts()))]}
	s.ControlPlanes, s.Workers = d.clusterSize()
	hosts := s.ControlPlanes + s.Workers
	kinds := Kinds()
	at := 0
	for n := d.throwDice(6, 7); n > 0; n-- {
		at += d.throwDice(100+n, 20)
		s.Faults = append(s.Faults, Fault{
			At: at, Kind: kinds[d.throwDice(200+n, len(kinds))], Host: d.throwDice(300+n, hosts), For: 1 +
				d.throwDice(400+n, 150),
		})
	}
	return s
}

// RandomAddons returns a seed's scenario in which a person changes the operator's own addons. Half of the other faults
// are about runs.
func RandomAddons(seed uint64) Scenario {
	s, d := Random(seed), dice(seed)
	ofRuns := []Kind{Killed, Paused, Stop, Second, Forced, Limited, FailOnce}
	for i := range s.Faults {
		f := &s.Faults[i]
		switch {
		case i%2 == 0:
			f.Kind = OwnAddons
		case d.throwDice(500+i, 2) == 0:
			f.Kind = ofRuns[d.throwDice(600+i, len(ofRuns))]
		}
	}
	return s
}

// RandomRoles returns a seed's scenario in which a person changes a host's role. Half of the other faults delete a
// marker, so that kubeone must identify the host by other means.
func RandomRoles(seed uint64) Scenario {
	s, d := Random(seed), dice(seed)
	hosts := s.ControlPlanes + s.Workers
	for i := range s.Faults {
		f := &s.Faults[i]
		switch {
		case i == len(s.Faults)/2:
			f.Kind = RoleOther
		case d.throwDice(500+i, 2) == 0:
			f.Kind, f.Host = MarkerLost, d.throwDice(600+i, hosts)
		case d.throwDice(700+i, 2) == 0: // of the same host
			f.Host = s.Faults[len(s.Faults)/2].Host
		}
	}
	return s
}
