package fsm

var workerQuestions = []question{
	{AskWanted, "Is the machine desired?"},
	{AskReturned, "Is its host bare again?"},
	{AskHost, "Is its host fit for it?"},
	{AskMember, "Has it joined the cluster?"},
	{AskMayJoin, "May it join?"},
	{AskHealthy, "Is it healthy?"},
	{AskCredentials, "Does its host have the desired credentials?"},
	{AskVersions, "Does it have the desired versions?"},
	{AskNode, "Is its Node as desired?"},
	{AskConfiguration, "Does its host have the desired settings?"},
}

// workerAnswers returns the possible answers to a question about a worker.
func workerAnswers(s State) []Event {
	switch s {
	case AskWanted:
		return []Event{OnYes, OnNo}
	case AskReturned:
		return []Event{OnYes, OnNo, OnForeign, OnNotKnown, OnGivenUp}
	case AskHost:
		return []Event{OnFit, OnUnfit, OnNotKnown}
	case AskMember:
		return []Event{OnYes, OnNo}
	case AskMayJoin:
		return []Event{OnYes, OnSkew, OnNotKnown}
	case AskHealthy:
		return []Event{OnHealthy, OnUnitsStopped, OnRegenerable, OnEdited, OnUnhealthy}
	case AskCredentials:
		return []Event{OnSame, OnDiffers}
	case AskVersions:
		return []Event{OnSame, OnDiffers, OnSkew, OnNotKnown, OnLater}
	case AskNode:
		return []Event{OnCurrent, OnStale}
	case AskConfiguration:
		return []Event{OnNone, OnDiffers, OnLater}
	}
	return nil
}

var workerTransitions = []Transition{
	{AskWanted, OnNo, AskReturned},
	{AskWanted, OnYes, AskHost},

	{AskReturned, OnNo, State(Return)},
	{AskReturned, OnGivenUp, State(Abandon)},
	{AskReturned, OnNotKnown, State(Wait)},
	{AskReturned, OnForeign, State(Nothing)},
	{AskReturned, OnYes, State(Nothing)},

	{AskHost, OnUnfit, State(Error)},
	{AskHost, OnNotKnown, State(Wait)},
	{AskHost, OnFit, AskMember},

	{AskMember, OnNo, AskMayJoin},
	{AskMember, OnYes, AskHealthy},

	{AskMayJoin, OnYes, State(Join)},
	{AskMayJoin, OnSkew, State(Error)},
	{AskMayJoin, OnNotKnown, State(Wait)},

	{AskHealthy, OnUnitsStopped, State(Repair)},
	{AskHealthy, OnRegenerable, State(Repair)},
	{AskHealthy, OnEdited, State(Repair)},
	{AskHealthy, OnUnhealthy, State(Wait)},
	{AskHealthy, OnHealthy, AskCredentials},

	{AskCredentials, OnDiffers, State(Reconfigure)},
	{AskCredentials, OnSame, AskVersions},

	{AskVersions, OnDiffers, State(Upgrade)},
	{AskVersions, OnSkew, State(Error)},
	{AskVersions, OnNotKnown, State(Wait)},
	{AskVersions, OnLater, State(Wait)},
	{AskVersions, OnSame, AskNode},

	{AskNode, OnStale, State(Resources)},
	{AskNode, OnCurrent, AskConfiguration},

	{AskConfiguration, OnDiffers, State(Reconfigure)},
	{AskConfiguration, OnLater, State(Wait)},
	{AskConfiguration, OnNone, State(Nothing)},
}

var workerRoutes = []Route{Nothing, Error, Wait, Resources, Repair, Join, Reconfigure, Upgrade, Return, Abandon}
