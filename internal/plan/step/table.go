package step

import (
	"slices"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
)

// row is everything that is known about a kind.
type row struct {
	kind     Kind
	about    string // what it does, in one line
	place    Place
	concerns Concern
	group    Group
	params   paramsType // zero for a kind without parameters

	traits trait

	begins func(Intent) bool // whether it begins the upgrade of a node; none begins after a failed one; nil: never
	halts  func(Intent) bool // whether its failure halts an upgrade; nil: never

	// partOf is the activity that it belongs to, for hooks before and after it. In a plan that creates a cluster,
	// joining is Installing.
	partOf desired.Activity

	secrets []Secret     // secrets that its stage may read
	only    desired.Role // the role on whose hosts it reads them; "" is every role

	// disrupts returns what it does to its host's part in etcd, which etcd must allow in the plan and at the step's
	// start.
	disrupts func(Intent) quorum.Disruption     // nil: nothing, or there is no quorum left, as in a recovery
	event    string                             // reason of the Event on its Node; "" if there is nothing to tell
	effect   func(*World, desired.Host, Intent) // what the world becomes
}

// trait is a property of all steps of a kind.
type trait uint16

// A kind without any of the first ten only inspects, or writes what no later decision depends on.
const (
	changesMembership   trait = 1 << iota // of etcd: one such step at a time, and none after one that failed
	installsRelease                       // installs binaries or images of a release, or relies on them
	namesImages                           // writes names of a release's images somewhere
	findsImages                           // finds images of a release by name before it changes anything
	createsControlPlane                   // where there was none: its credentials are read from the host
	joinsCluster                          // its host becomes a member of the cluster
	clearsHost                            // its host becomes bare
	cordonsNode                           // its Node gets no more pods until a step that uncordons
	uncordonsNode                         // its Node gets pods again
	writesStaticPods                      // on control-plane hosts, and so the secret files that these read
	allOrNothing                          // leaves the host unchanged if it fails
	coreOfActivity                        // a plan without such a step lacks the activity (row.partOf) on that host

	// runsByHand: a host's script without an argument runs the stage, too. Such a stage removes nothing, and checks
	// itself what etcd must allow.
	runsByHand
)

func (k Kind) hasTrait(t trait) bool { return k.row().traits&t != 0 }

// rows is the table, in the order of the documentation.
var rows = []row{
	prepareRow(), imagesRow(), controllerFilesRow(), initRow(),
	copyPKIRow(), joinPrepareRow(), joinEtcdRow(), joinFinishRow(), joinWorkerRow(),
	restartUnitsRow(), regenerateRow(), restoreFilesRow(), quarantineRow(),
	apiNamesRow(), dialRow(), publishEndpointRow(),
	fetchRow(), checkRow(), upgradeControlPlaneRow(), upgradeWorkerRow(), systemAddonsRow(), reconfigureRow(),
	encryptRow(atrest.Learn), encryptRow(atrest.Use), encryptRow(atrest.Forget), encryptRow(atrest.Give),
	rewriteSecretsRow(), checkSecretsRow(),
	rotateRow(rotation.Learn), rotateRow(rotation.Use), rotateRow(rotation.Forget),
	renewTokensRow(), renewTokenSecretsRow(), trimFrontProxyCARow(), trimClientCARow(),
	publishCARow(), learnCARow(), podsTrustCARow(), forgetCARow(),
	snapshotRow(), fenceRow(), restoreRow(), resetHostRow(), purgeRow(),
	removeAutoApprovalRow(), revokeTokensRow(),
	nodeReadyRow(), applyAddonRow(), removeAddonRow(), applyReleaseRow(), removeReleaseRow(), setSystemRow(),
	removeKubeProxyRow(),
	approveServingRow(), awaitWorkloadsRow(),
	createMachinesRow(), upgradeMachinesRow(), saveRecordRow(),
	drainNodeRow(), uncordonRow(), removeEtcdRow(), deleteNodeRow(),
	deleteMachinesRow(), awaitHostsRow(), hooksRow(), operatorHooksRow(),
}

// table maps kinds to rows. It is never changed.
var table = byKind(rows) //nolint:gochecknoglobals // a constant

func byKind(rows []row) map[Kind]*row {
	out := make(map[Kind]*row, len(rows))
	for i := range rows {
		out[rows[i].kind] = &rows[i]
	}
	return out
}

// nothing is the row of a kind that is not in the table.
var nothing = &row{effect: noEffect} //nolint:gochecknoglobals // a constant

func (k Kind) row() *row {
	if r := table[k]; r != nil {
		return r
	}
	return nothing
}

// Kinds returns all kinds, in the table's order.
func Kinds() []Kind {
	out := make([]Kind, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.kind)
	}
	return out
}

// About returns what steps of the kind do, in one line.
func (k Kind) About() string { return k.row().about }

// Place returns where steps of the kind run.
func (k Kind) Place() Place { return k.row().place }

// Concerns returns whose business steps of the kind are, and so what must be locked.
func (k Kind) Concerns() Concern { return k.row().concerns }

// Params returns the kind's parameters with zero values; nil for a kind without parameters.
func (k Kind) Params() Params { return k.row().params.zero }

// OnHost reports whether steps of the kind are a stage of a host's script. All others use the API or etcd.
func (k Kind) OnHost() bool { return k.row().place == OnHost }

// NeedsAPI reports whether steps of the kind go through the API of Kubernetes.
func (k Kind) NeedsAPI() bool { return k.row().place == ThroughAPI }

// Group returns the part of a run to which steps of the kind belong.
func (k Kind) Group() Group { return k.row().group }

// Event returns the reason of the Event that a step of the kind leaves on its Node; "" for one that changes no Node.
func (k Kind) Event() string { return k.row().event }

// ChangesMembership reports whether steps of the kind change who is a member of etcd.
func (k Kind) ChangesMembership() bool { return k.hasTrait(changesMembership) }

// Installs reports whether steps of the kind install binaries or images of a release, or rely on them.
func (k Kind) Installs() bool { return k.hasTrait(installsRelease) }

// NeedsRelease reports whether steps of the kind need to know all parts of a release.
func (k Kind) NeedsRelease() bool { return k.hasTrait(installsRelease | namesImages) }

// NamesRelease reports whether steps of the kind need the names of a release's images, or all of it.
func (k Kind) NamesRelease() bool { return k.NeedsRelease() || k.hasTrait(findsImages) }

// CreatesControlPlane reports whether a step of the kind creates a control plane, to which there are no credentials
// yet.
func (k Kind) CreatesControlPlane() bool { return k.hasTrait(createsControlPlane) }

// Joins reports whether a host is a member of the cluster once a step of the kind is done.
func (k Kind) Joins() bool { return k.hasTrait(joinsCluster) }

// ClearsHost reports whether a host is bare once a step of the kind is done.
func (k Kind) ClearsHost() bool { return k.hasTrait(clearsHost) }

// Cordons reports whether steps of the kind leave their Node cordoned.
func (k Kind) Cordons() bool { return k.hasTrait(cordonsNode) }

// Uncordons reports whether steps of the kind uncordon their Node.
func (k Kind) Uncordons() bool { return k.hasTrait(uncordonsNode) }

// AllOrNothing reports whether a failed step of the kind leaves its host unchanged.
func (k Kind) AllOrNothing() bool { return k.hasTrait(allOrNothing) }

// PartOf returns the activity that steps of the kind belong to, "" for none, and whether they are the core of it.
func (k Kind) PartOf() (activity desired.Activity, core bool) {
	return k.row().partOf, k.hasTrait(coreOfActivity)
}

// ByHand reports whether a host's script without an argument runs the stage of the kind.
func (k Kind) ByHand() bool { return k.hasTrait(runsByHand) }

// BeginsUpgrade reports whether the upgrade of a node begins with the step.
func (i Intent) BeginsUpgrade() bool {
	begins := i.Kind.row().begins
	return begins != nil && begins(i)
}

// HaltsUpgrade reports whether a failure of the step prevents the upgrade of other nodes.
func (i Intent) HaltsUpgrade() bool {
	halts := i.Kind.row().halts
	return halts != nil && halts(i)
}

// Disrupts returns what the step does to its host's part in etcd.
func (i Intent) Disrupts() quorum.Disruption {
	if disrupts := i.Kind.row().disrupts; disrupts != nil {
		return disrupts(i)
	}
	return quorum.NoDisruption
}

// Secrets returns the secrets that the step's stage may read.
func (i Intent) Secrets() []Secret {
	r := i.Kind.row()
	var out []Secret
	if r.only == "" || i.Role == r.only {
		out = slices.Clone(r.secrets)
	}
	if i.Kind.hasTrait(writesStaticPods) && i.Role == desired.ControlPlane {
		out = append(out, ComponentSecret)
	}
	return out
}

// NeedsToken reports whether the step's stage reads a join token.
func (i Intent) NeedsToken() bool {
	secrets := i.Secrets()
	return slices.Contains(secrets, NewTokenSecret) || slices.Contains(secrets, TokenSecret)
}

func always(Intent) bool { return true }

// paramsType returns the type of a kind's parameters.
type paramsType struct {
	zero Params
	read func([]byte) (Params, error) // from JSON; fails for fields that the type lacks
}

func paramsOf[P Params]() paramsType {
	var zero P
	return paramsType{zero, func(text []byte) (Params, error) {
		var params P
		err := decodeStrictly(text, &params)
		return params, err
	}}
}

// Variables returns the shell variables with the parameters of a host's steps, in the table's order. It includes every
// kind with variables; a kind without a step has the values of zero parameters.
func Variables(steps []Intent) []Variable {
	var out []Variable
	for _, r := range rows {
		params := r.params.zero
		for _, s := range steps {
			if s.Kind == r.kind && s.Params != nil {
				params = s.Params
			}
		}
		if of, ok := params.(interface{ scriptVariables() []Variable }); ok {
			out = append(out, of.scriptVariables()...)
		}
	}
	return out
}
