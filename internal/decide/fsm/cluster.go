package fsm

var clusterQuestions = []question{
	{AskHosts, "Are the hosts fit for the desired state?"},
	{AskProvisioned, "Does a control plane exist?"},
	{AskControlPlane, "Is the control plane healthy?"},
	{AskQuorum, "Does etcd have a quorum?"},
	{AskRepairable, "Can it be repaired?"},
	{AskEndpoint, "Is the API at the manifest's endpoint?"},
	{AskMissing, "Are hosts missing from the cluster?"},
	{AskWorkers, "Are the workers healthy?"},
	{AskVersion, "Which version is desired?"},
	{AskConfiguration, "Does the configuration differ?"},
	{AskEncryption, "Are Secrets encrypted as desired?"},
	{AskObjects, "Are addons, labels and record current?"},
}

// clusterAnswers returns the possible answers to a question about a cluster.
func clusterAnswers(s State) []Event {
	switch s {
	case AskHosts:
		return []Event{OnFit, OnUnfit}
	case AskProvisioned:
		return []Event{OnYes, OnNo, OnNotKnown}
	case AskControlPlane:
		return []Event{OnHealthy, OnUnhealthy}
	case AskQuorum:
		return []Event{OnSatisfied, OnRecoverable, OnLost}
	case AskRepairable:
		return []Event{OnUnitsStopped, OnRegenerable, OnEdited, OnMemberDead, OnDataLost, OnNotRepairable}
	case AskEndpoint:
		return []Event{OnSame, OnDiffers}
	case AskMissing:
		return []Event{OnNone, OnMissing, OnMissingLater}
	case AskWorkers:
		return []Event{OnHealthy, OnUnitsStopped, OnRegenerable, OnEdited, OnUnhealthy}
	case AskVersion:
		return []Event{OnSame, OnHigher, OnDiffers, OnForced, OnLower, OnSkipsMinor, OnSkew, OnEdited, OnNotKnown}
	case AskConfiguration:
		return []Event{OnNone, OnEdited, OnEnding, OnDiffers}
	case AskEncryption:
		return []Event{OnSame, OnDiffers}
	case AskObjects:
		return []Event{OnCurrent, OnStale}
	}
	return nil
}

var clusterTransitions = []Transition{
	{AskHosts, OnUnfit, State(Error)},
	{AskHosts, OnFit, AskProvisioned},

	{AskProvisioned, OnNotKnown, State(Error)},
	{AskProvisioned, OnNo, State(Install)},
	{AskProvisioned, OnYes, AskControlPlane},

	{AskControlPlane, OnUnhealthy, AskQuorum},
	{AskControlPlane, OnHealthy, AskEndpoint},

	{AskQuorum, OnLost, State(DisasterRecovery)},
	{AskQuorum, OnRecoverable, AskRepairable},
	{AskQuorum, OnSatisfied, AskRepairable},

	{AskRepairable, OnUnitsStopped, State(Repair)},
	{AskRepairable, OnRegenerable, State(Repair)},
	{AskRepairable, OnEdited, State(Repair)},
	{AskRepairable, OnMemberDead, State(Repair)},
	{AskRepairable, OnDataLost, State(Repair)},
	{AskRepairable, OnNotRepairable, State(Instruct)},

	{AskEndpoint, OnDiffers, State(MoveEndpoint)},
	{AskEndpoint, OnSame, AskMissing},

	{AskMissing, OnMissing, State(Join)},
	{AskMissing, OnMissingLater, AskWorkers},
	{AskMissing, OnNone, AskWorkers},

	{AskWorkers, OnUnitsStopped, State(Repair)},
	{AskWorkers, OnRegenerable, State(Repair)},
	{AskWorkers, OnEdited, State(Repair)},
	{AskWorkers, OnUnhealthy, State(Instruct)},
	{AskWorkers, OnHealthy, AskVersion},

	{AskVersion, OnNotKnown, State(Error)},
	{AskVersion, OnLower, State(Error)},
	{AskVersion, OnSkipsMinor, State(Error)},
	{AskVersion, OnSkew, State(Error)},
	{AskVersion, OnEdited, State(Error)},
	{AskVersion, OnHigher, State(Upgrade)},
	{AskVersion, OnDiffers, State(Upgrade)},
	{AskVersion, OnForced, State(Upgrade)},
	{AskVersion, OnSame, AskConfiguration},

	{AskConfiguration, OnEdited, State(Repair)},
	{AskConfiguration, OnEnding, State(Repair)},
	{AskConfiguration, OnDiffers, State(Reconfigure)},
	{AskConfiguration, OnNone, AskEncryption},

	{AskEncryption, OnDiffers, State(Encrypt)},
	{AskEncryption, OnSame, AskObjects},

	{AskObjects, OnStale, State(Resources)},
	{AskObjects, OnCurrent, State(Nothing)},
}

var clusterRoutes = []Route{
	Nothing, Error, Instruct, DisasterRecovery, Resources, Repair, MoveEndpoint, Join, Encrypt, Reconfigure,
	Upgrade, Install,
}
