package world

import (
	"errors"

	"kubeone/internal/plan/step"
)

// work is the work of a kind of step: phases on its host, or requests to the API or etcd.
type work struct {
	phases  []phase
	request request
	repairs bool // healthy hosts do not need it
}

// encrypting changes the list of keys of a host's API server.
var encrypting = []phase{
	mayEncrypt, placeKeys, beginUpgrade, tellKeys, awaitKubelet, awaitEtcd, awaitAPI, endUpgrade,
}

// works has the work of each kind.
var works = map[step.Kind]work{
	step.Prepare: {phases: []phase{markBegun, installRuntime}, repairs: true},
	step.Images:  {phases: []phase{fetchImages}},

	step.ControllerFiles: {phases: []phase{fetchImages}},
	step.Init: {phases: []phase{initPKI, initEtcd, writeAPI, awaitKubelet, awaitAPI, markControlPlane, markJoined},
		repairs: true},
	step.CopyPKI:     {phases: []phase{writePKI}, repairs: true},
	step.JoinPrepare: {phases: []phase{joinKubelet, awaitKubelet}, repairs: true},
	step.JoinEtcd:    {phases: []phase{addMember, startMember, promoteMember}, repairs: true},
	step.JoinFinish: {phases: []phase{writeAPI, awaitAPI, finalizeKubelet, markControlPlane, markJoined},
		repairs: true},
	step.JoinWorker: {phases: []phase{joinWorker, awaitKubelet, markJoined}, repairs: true},

	step.RestartUnits: {phases: []phase{restartUnits, awaitKubelet, awaitAPI}, repairs: true},
	step.Regenerate: {phases: []phase{renewCertificates, signKubelet, writeManifests, awaitKubelet, awaitEtcd,
		awaitAPI},
		repairs: true},
	step.RestoreFiles: {phases: []phase{stopUnits, restoreFiles, startUnits, awaitKubelet, awaitAPI},
		repairs: true},
	step.Quarantine: {phases: []phase{stopAll, moveAside, markUnfinished}, repairs: true},

	step.APINames: {phases: []phase{certifyNames}},
	step.Dial:     {phases: []phase{redialEndpoint, awaitKubelet}},

	step.Check: {phases: []phase{checkUpgrade}},
	step.Fetch: {phases: []phase{fetchImages}},
	step.UpgradeControlPlane: {phases: []phase{
		checkUpgrade, beginUpgrade, awaitOthers, writeAPI, kubeletLocal, stopAll, changeKubelet, awaitKubelet,
		awaitEtcd, awaitAPI, markJoined, endUpgrade,
	}},
	step.UpgradeWorker: {
		phases: []phase{checkUpgrade, beginUpgrade, changeKubelet, awaitKubelet, markJoined, endUpgrade},
	},
	step.SystemAddons: {phases: []phase{applySystem}},
	step.Reconfigure: {phases: []phase{
		checkRunning, markChange, awaitOthers, stopForSettings, changeSettings, trySettings, awaitKubelet, awaitEtcd,
		awaitAPI, markJoined, endUpgrade,
	}},

	step.EncryptLearn:   {phases: encrypting},
	step.EncryptUse:     {phases: encrypting},
	step.EncryptForget:  {phases: encrypting},
	step.EncryptGive:    {phases: encrypting},
	step.CheckSecrets:   {phases: []phase{checkSecrets}},
	step.RewriteSecrets: {request: rewriteSecrets},

	step.RotateLearn:       {phases: rotating},
	step.RotateUse:         {phases: rotating},
	step.RotateForget:      {phases: rotating},
	step.RenewTokens:       {phases: []phase{restartUnits, awaitKubelet}},
	step.RenewTokenSecrets: {request: requestAnswered},
	step.TrimFrontProxyCA:  {request: requestAnswered},
	step.TrimClientCA:      {request: requestAnswered},
	step.PublishCA:         {request: requestAnswered},
	step.PodsTrustCA:       {request: requestAnswered},
	step.LearnCA:           {phases: []phase{restartUnits, awaitKubelet}},
	step.ForgetCA:          {phases: []phase{restartUnits, awaitKubelet}},

	step.Snapshot:  {phases: []phase{takeSnapshot}},
	step.Fence:     {phases: []phase{fenceMark, stopAll, takeAway}},
	step.Restore:   {phases: []phase{restoreMark, restoreData, beginAnew, awaitAPI, markRestored}},
	step.ResetHost: {phases: []phase{stopAll, keepAside, deleteAll}},
	step.Purge:     {phases: []phase{deleteAside}},

	step.RemoveAutoApproval: {request: removeAutoApproval},
	step.RevokeTokens:       {request: requestAnswered},
	step.RemoveAddon:        {request: requestAnswered},
	step.ApplyRelease:       {request: requestAnswered},
	step.RemoveRelease:      {request: requestAnswered},
	step.RemoveKubeProxy:    {request: requestAnswered},
	step.AwaitWorkloads:     {request: requestAnswered},
	step.CreateMachines:     {request: requestAnswered},
	step.UpgradeMachines:    {request: requestAnswered},
	step.SetSystem:          {request: requestAnswered},
	step.PublishEndpoint:    {request: publishEndpoint},
	step.ApproveServing:     {request: requestAnswered},
	step.ApplyAddon:         {request: applyAddon},
	step.SaveRecord:         {request: saveRecord},
	step.NodeReady:          {request: nodeReady},
	step.DrainNode:          {request: drainNode},
	step.Uncordon:           {request: uncordonNode},
	step.RemoveEtcd:         {request: removeMember},
	step.DeleteNode:         {request: deleteNode},

	step.Hooks:         {phases: []phase{runHooks}},
	step.OperatorHooks: {request: requestAnswered},

	// The simulator has no Machines, and so nothing to do or to wait for.
	step.DeleteMachines: {request: requestAnswered},
	step.AwaitHosts:     {request: requestAnswered},
}

// Repairs reports whether steps of the kind are only for damaged hosts.
func Repairs(k step.Kind) bool { return works[k].repairs }

// errUnknown is the failure of a step without simulated work.
func errUnknown(k step.Kind) error {
	return errors.New("the simulator does not know what a step of kind " + string(k) + " does")
}
