package pool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	provider "kubeone/internal/machines/provider/ssh"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// Machine is a machine that is to be a Host.
type Machine struct {
	// At says how it is reached. Its User and Port are set: they are what the cluster uses, too.
	At host.Target
	// PrivateAddress is the IP address that its Node is to have; "" is the one at which it is reached, or the only one
	// that the machine itself has.
	PrivateAddress string
	FailureDomain  string
	Labels         map[string]string
}

// Candidate is a Machine that was looked at and may become a Host.
type Candidate struct {
	Host   *kubeone.Host
	System observed.Host
	// Contacts are the host keys on the way to it that nobody has approved yet, outermost bastion first.
	Contacts []host.FirstContact
	// Known says that the same Host is there already.
	Known bool

	way     host.Host
	bastion host.Host // nil where there is none
}

// Adder adds machines to the pool.
type Adder struct {
	Client client.Client  // of the cluster's API
	SSH    *sshpool.Pool  // logs in as the operator does
	Key    ssh.Signer     // with which the cluster will
	Login  func() SSHPool // makes a pool that logs in with Key alone; nil makes a real one
}

// SSHPool is what of sshpool.Pool logs in.
type SSHPool interface {
	Host(host.Target) host.Host
	io.Closer
}

// checkNames refuses a Host with the name of another one that is added with it.
func checkNames(h *kubeone.Host, beside []Candidate) error {
	for _, other := range beside {
		if other.Host.Name == h.Name {
			return fmt.Errorf("%s and %s both call themselves %s; give each a name with --name",
				other.Host.Spec.Address, h.Spec.Address, h.Name)
		}
	}
	return nil
}

// Look logs in to a machine as the operator and finds out whether it may become a Host, beside those that are to be
// added with it. It changes nothing.
//
// Errors are those of the SSH connection (*host.Error), and what stands against the machine.
func (a *Adder) Look(ctx context.Context, m Machine, beside ...Candidate) (Candidate, error) {
	c := Candidate{way: a.SSH.Host(m.At)}
	if _, err := c.way.Run(ctx, host.Cmd{Name: "log in", Script: ":"}); err != nil {
		return c, err
	}
	seen, err := probe.Run(ctx, probe.Request{Targets: []probe.Target{{ID: m.At.Address, Host: c.way}}})
	if err != nil {
		return c, err
	}
	if c.System = seen.World.Hosts[m.At.Address]; c.System.Reach != observed.Reached {
		return c, fmt.Errorf("%s: it did not say what it is: %s", m.At.DisplayName(), c.System.Problem)
	}
	name := cmp.Or(m.At.Name, strings.ToLower(c.System.Hostname))
	if len(name) > validation.LabelValueMaxLength || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return c, fmt.Errorf("%s: its hostname %q cannot be the name of a Node; give one with --name",
			m.At.DisplayName(), name)
	}
	c.Host = &kubeone.Host{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.Labels},
		Spec: kubeone.HostSpec{
			Address: m.At.Address, Port: int32(m.At.Port), User: m.At.User, //nolint:gosec // validated: a port
			PrivateAddress: m.PrivateAddress, FailureDomain: m.FailureDomain,
		},
	}
	if c.Host.Spec.HostKeys, err = hostKeys(ctx, c.way, m.At); err != nil {
		return c, err
	}
	c.Contacts = firstContacts(c.way)
	if len(m.At.Bastions) > 0 {
		if err := a.lookAtBastion(ctx, m.At.Bastions[0], &c); err != nil {
			return c, err
		}
	}
	if err := checkNames(c.Host, beside); err != nil {
		return c, err
	}
	all, err := a.compareHost(ctx, &c)
	if err != nil {
		return c, err
	}
	if err := occupiedBy(c.Host, c.System); err != nil || c.Known {
		return c, err
	}
	if c.Host.Spec.PrivateAddress, err = privateAddress(m, c.System); err != nil {
		return c, err
	}
	for _, other := range beside {
		all = append(all, *other.Host)
	}
	for i := range all {
		if is := &all[i]; is.Name != name && provider.SameAddress(is, c.Host) {
			return c, fmt.Errorf("%s would have the address %s of the Host %s; give the one that the other Nodes "+
				"reach with --private-address", name, provider.NodeAddress(is), is.Name)
		}
	}
	return c, a.checkNameFree(ctx, name)
}

// privateAddress is the address of the Node where that is not the one at which the machine is reached, as behind NAT or
// by a name: its kubelet's serving certificate is approved for an address that the Host has, and for no other.
func privateAddress(m Machine, is observed.Host) (string, error) {
	own := is.Addresses
	switch {
	case m.PrivateAddress != "":
		return m.PrivateAddress, nil
	case slices.Contains(own, m.At.Address):
		return "", nil
	case len(own) == 1:
		return own[0], nil
	case len(own) == 0:
		return "", fmt.Errorf("%s: it does not say which addresses it has; give the one that the other Nodes reach "+
			"with --private-address", m.At.DisplayName())
	}
	return "", fmt.Errorf("%s: %s is none of its own addresses, which are %s; give the one that the other Nodes reach "+
		"with --private-address", m.At.DisplayName(), m.At.Address, strings.Join(own, ", "))
}

// checkNameFree refuses the name of somebody's Node.
func (a *Adder) checkNameFree(ctx context.Context, name string) error {
	switch err := a.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); {
	case err == nil:
		return fmt.Errorf("there is a Node %s already; give the Host another name with --name", name)
	case !apierrors.IsNotFound(err):
		return apicall.Wrap("look for a Node "+name, "", err)
	}
	return nil
}

// occupiedBy says why a host cannot join a pool: somebody has it. A host of the pool may be its own Machine's: it has
// lost the cluster's key, as a reboot may have its authorized_keys written anew.
func occupiedBy(h *kubeone.Host, is observed.Host) error {
	name := h.Name
	switch m := is.Marker; {
	case m != nil && h.Status.Claim != nil && m.ID == string(h.Status.Claim.UID):
		return nil
	case m != nil && m.Machine != "":
		return fmt.Errorf("%s is Machine %s's, of the cluster %s; it is free once that has returned it", name,
			m.Machine, m.Cluster)
	case m != nil:
		return fmt.Errorf("%s is a host of the cluster %s, by that one's manifest; kubeone reset --host %s empties it",
			name, m.Cluster, name)
	case is.KubeletConf == observed.Yes || is.EtcdData == observed.Yes || is.PKI == observed.Yes:
		return fmt.Errorf("%s has a Kubernetes that kubeone does not know; it must be empty", name)
	}
	return nil
}

func (a *Adder) lookAtBastion(ctx context.Context, at host.Target, c *Candidate) error {
	at.AsUser = true
	c.bastion = a.SSH.Host(at)
	keys, err := hostKeys(ctx, c.bastion, at)
	if err != nil {
		return err
	}
	c.Contacts = append(firstContacts(c.bastion), c.Contacts...)
	c.Host.Spec.Bastion = &kubeone.Bastion{
		Address: at.Address, Port: int32(at.Port), User: at.User, HostKeys: keys, //nolint:gosec // validated: a port
	}
	return nil
}

// compareHost finds out whether the Host is there, and refuses one that is another, and one machine under two names. It
// returns all Hosts that there are.
func (a *Adder) compareHost(ctx context.Context, c *Candidate) ([]kubeone.Host, error) {
	all, err := List(ctx, a.Client)
	if err != nil && !errors.Is(err, errNoPool) {
		return nil, err
	}
	want := c.Host
	for i := range all {
		is := &all[i]
		switch {
		case is.Name != want.Name && sameWay(is, want):
			return nil, fmt.Errorf("this machine is in the pool already, as the Host %s", is.Name)
		case is.Name == want.Name && (!sameWay(is, want) || is.Spec.User != want.Spec.User):
			return nil, fmt.Errorf("the Host %s is there already, at %s@%s port %d, or another way leads there; "+
				"kubectl edit host %s changes it, and kubeone host remove %s removes it", is.Name, is.Spec.User,
				is.Spec.Address, is.Spec.Port, is.Name, is.Name)
		case is.Name == want.Name:
			c.Host, c.Known = is, true
		}
	}
	if c.Known {
		return all, a.checkDescription(want, c.Host)
	}
	return all, nil
}

// sameWay reports whether two Hosts are reached in the same way, whoever logs in. A Host that is added again need not
// name its bastion.
func sameWay(is, other *kubeone.Host) bool {
	if is.Spec.Address != other.Spec.Address || is.Spec.Port != other.Spec.Port {
		return false
	}
	a, b := is.Spec.Bastion, other.Spec.Bastion
	return b == nil || a != nil && a.Address == b.Address && a.Port == b.Port && a.User == b.User
}

// checkDescription refuses what is said of a Host that is there, and is not so: nothing of it would be changed.
func (*Adder) checkDescription(want, is *kubeone.Host) error {
	for key, value := range want.Labels {
		if is.Labels[key] != value {
			return fmt.Errorf("the Host %s is there already; kubectl label host %s %s=%s labels it", is.Name, is.Name,
				key, value)
		}
	}
	if a := want.Spec.PrivateAddress; a != "" && a != cmp.Or(is.Spec.PrivateAddress, is.Spec.Address) {
		return fmt.Errorf("the Host %s is there already, with the private address %q; kubectl edit host %s changes it",
			is.Name, cmp.Or(is.Spec.PrivateAddress, is.Spec.Address), is.Name)
	}
	if d := want.Spec.FailureDomain; d != "" && d != is.Spec.FailureDomain {
		return fmt.Errorf("the Host %s is there already, in the failure domain %q; kubectl edit host %s changes that",
			is.Name, is.Spec.FailureDomain, is.Name)
	}
	return nil
}

// mostKeys is how many host keys a Host has at most.
const mostKeys = 8

// hostKeys are the keys of a machine's SSH server as the machine itself says, in the form of authorized_keys, without
// comments.
func hostKeys(ctx context.Context, h host.Host, at host.Target) ([]string, error) {
	said, err := h.Run(ctx, host.Cmd{Name: "read its host keys", Script: hostKeysScript})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range bytes.Lines(said.Stdout) {
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || len(line) > 1024 || len(keys) == mostKeys {
			continue
		}
		keys[strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))] = true
	}
	for _, c := range firstContacts(h) {
		if c.Address == net.JoinHostPort(at.Address, strconv.Itoa(at.Port)) { // and not a bastion's
			keys[strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.Key)))] = true
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: it does not say which host keys its SSH server has", h.Name())
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

func firstContacts(h host.Host) []host.FirstContact {
	if f, ok := h.(host.FirstContacter); ok {
		return f.FirstContacts()
	}
	return nil
}

// Add makes a machine that was looked at a Host: its contacts are approved, the cluster's key is let in and tried, and
// the object is made, in this order: an object is there only for a host that the cluster has been logged in to. What
// fails takes the key away again. Added again, nothing changes.
func (a *Adder) Add(ctx context.Context, c Candidate) error {
	if err := a.SSH.Approve(c.Contacts...); err != nil {
		return err
	}
	err := a.addHost(ctx, c)
	if err == nil || c.Known {
		return err
	}
	return a.undoAuthorize(ctx, c, err)
}

// undoAuthorize takes the key away from a machine that did not become a Host, for that error. Where the object is there
// after all, somebody else has made it meanwhile, or the API server's answer was lost: then the key is needed.
func (a *Adder) undoAuthorize(ctx context.Context, c Candidate, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	is := &kubeone.Host{}
	switch looked := a.Client.Get(ctx, client.ObjectKeyFromObject(c.Host), is); {
	case looked == nil && sameWay(is, c.Host):
		return nil
	case looked != nil && !apierrors.IsNotFound(looked):
		return fmt.Errorf("%w; and it is not known whether the Host is there: the cluster's key stays in its "+
			"authorized_keys", err)
	}
	if undo := revokeKey(ctx, c.way, c.Host.Spec.User, a.Key.PublicKey()); undo != nil {
		return fmt.Errorf("%w; and the cluster's key stays in its authorized_keys: %w", err, undo)
	}
	return err
}

// undoWithin is how long a host has to give the key back.
const undoWithin = 30 * time.Second

func (a *Adder) addHost(ctx context.Context, c Candidate) error {
	key := a.Key.PublicKey()
	if c.bastion != nil {
		if err := authorizeKey(ctx, c.bastion, c.Host.Spec.Bastion.User, onBastions, key); err != nil {
			return err
		}
	}
	if err := authorizeKey(ctx, c.way, c.Host.Spec.User, onHosts, key); err != nil {
		return err
	}
	if err := a.tryLogin(ctx, c.Host); err != nil {
		return err
	}
	if c.Known {
		return nil
	}
	return apicall.Wrap("make the Host "+c.Host.Name, "", a.Client.Create(ctx, c.Host))
}

func authorizeKey(ctx context.Context, h host.Host, user, options string, key ssh.PublicKey) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "let the cluster's key in", Script: authorizeScript,
		Args: []string{user, authorizedKeysLine(options, key)},
	})
	return err
}

// tryLogin logs in as the cluster will.
func (a *Adder) tryLogin(ctx context.Context, h *kubeone.Host) error {
	at, err := provider.TargetOf(h)
	if err != nil {
		return err
	}
	pool := a.loginPool()
	defer func() { _ = pool.Close() }() // nothing depends on how a connection ends
	_, err = pool.Host(at).Run(ctx, host.Cmd{Name: "log in with the cluster's key", Script: ":"})
	return err
}

func (a *Adder) loginPool() SSHPool {
	if a.Login != nil {
		return a.Login()
	}
	return provider.OpenPool(a.Key)
}
