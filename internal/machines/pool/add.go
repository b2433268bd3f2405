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

// Machine describes a machine to add to the pool.
type Machine struct {
	// At is the SSH target of the machine. User and Port must be set, because the cluster uses them too.
	At host.Target
	// PrivateAddress is the IP address of the Node. If it is "", the Node has the address in At, or the only address of
	// the machine.
	PrivateAddress string
	FailureDomain  string
	Labels         map[string]string
}

// Candidate is a machine that was inspected and can be added as a Host.
type Candidate struct {
	Host   *kubeone.Host
	System observed.Host
	// Contacts are the unknown SSH host keys on the route to the machine, outermost bastion first.
	Contacts []host.FirstContact
	// Known says that a Host with the same name and connection already exists.
	Known bool

	conn    host.Host
	bastion host.Host // nil if there is none
}

// Adder adds machines to the pool.
type Adder struct {
	Client client.Client  // for the cluster API
	SSH    *sshpool.Pool  // logs in as the operator
	Key    ssh.Signer     // the SSH key of the cluster
	Login  func() SSHPool // returns a pool that uses only Key; nil uses OpenPool
}

// SSHPool is the part of sshpool.Pool that is needed to log in.
type SSHPool interface {
	Host(host.Target) host.Host
	io.Closer
}

// checkNames returns an error if another candidate has the same name as the Host.
func checkNames(h *kubeone.Host, others []Candidate) error {
	for _, other := range others {
		if other.Host.Name == h.Name {
			return fmt.Errorf("%s and %s have the same hostname %s; set different names with --name",
				other.Host.Spec.Address, h.Spec.Address, h.Name)
		}
	}
	return nil
}

// Inspect logs in to a machine as the operator and checks whether it can be added together with the others. It changes
// nothing.
//
// The error is that of the SSH connection (*host.Error), or says why the machine cannot be added.
func (a *Adder) Inspect(ctx context.Context, m Machine, others ...Candidate) (Candidate, error) {
	c := Candidate{conn: a.SSH.Host(m.At)}
	if _, err := c.conn.Run(ctx, host.Cmd{Name: "log in", Script: ":"}); err != nil {
		return c, err
	}
	seen, err := probe.Run(ctx, probe.Request{Targets: []probe.Target{{ID: m.At.Address, Host: c.conn}}})
	if err != nil {
		return c, err
	}
	if c.System = seen.World.Hosts[m.At.Address]; c.System.Reach != observed.Reached {
		return c, fmt.Errorf("%s: the probe failed: %s", m.At.DisplayName(), c.System.Problem)
	}
	name := cmp.Or(m.At.Name, strings.ToLower(c.System.Hostname))
	if len(name) > validation.LabelValueMaxLength || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return c, fmt.Errorf("%s: the hostname %q is not a valid Node name; set a name with --name",
			m.At.DisplayName(), name)
	}
	c.Host = &kubeone.Host{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.Labels},
		Spec: kubeone.HostSpec{
			Address: m.At.Address, Port: int32(m.At.Port), User: m.At.User, //nolint:gosec // validated: a port
			PrivateAddress: m.PrivateAddress, FailureDomain: m.FailureDomain,
		},
	}
	if c.Host.Spec.HostKeys, err = readHostKeys(ctx, c.conn, m.At); err != nil {
		return c, err
	}
	c.Contacts = firstContacts(c.conn)
	if len(m.At.Bastions) > 0 {
		if err := a.inspectBastion(ctx, m.At.Bastions[0], &c); err != nil {
			return c, err
		}
	}
	if err := checkNames(c.Host, others); err != nil {
		return c, err
	}
	existing, err := a.findExisting(ctx, &c)
	if err != nil {
		return c, err
	}
	if err := checkUnoccupied(c.Host, c.System); err != nil || c.Known {
		return c, err
	}
	if c.Host.Spec.PrivateAddress, err = choosePrivateAddress(m, c.System); err != nil {
		return c, err
	}
	for _, other := range others {
		existing = append(existing, *other.Host)
	}
	for i := range existing {
		if is := &existing[i]; is.Name != name && provider.SameAddress(is, c.Host) {
			return c, fmt.Errorf("%s would have the same Node address (%s) as Host %s; set another address with "+
				"--private-address", name, provider.NodeAddress(is), is.Name)
		}
	}
	return c, a.checkNameFree(ctx, name)
}

// choosePrivateAddress returns the Node address if it differs from the SSH address, for example behind NAT or if the
// SSH address is a DNS name. It returns "" if they are the same. The serving certificate of the kubelet is approved
// only for the addresses of the Host.
func choosePrivateAddress(m Machine, seen observed.Host) (string, error) {
	reported := seen.Addresses
	switch {
	case m.PrivateAddress != "":
		return m.PrivateAddress, nil
	case slices.Contains(reported, m.At.Address):
		return "", nil
	case len(reported) == 1:
		return reported[0], nil
	case len(reported) == 0:
		return "", fmt.Errorf("%s: the machine does not report its addresses; set the Node address with "+
			"--private-address", m.At.DisplayName())
	}
	return "", fmt.Errorf("%s: %s is not an address of the machine, which reports %s; set the Node address with "+
		"--private-address", m.At.DisplayName(), m.At.Address, strings.Join(reported, ", "))
}

// checkNameFree returns an error if a Node with this name exists.
func (a *Adder) checkNameFree(ctx context.Context, name string) error {
	switch err := a.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); {
	case err == nil:
		return fmt.Errorf("Node %s already exists; set another name for the Host with --name", name)
	case !apierrors.IsNotFound(err):
		return apicall.Wrap("read Node "+name, "", err)
	}
	return nil
}

// checkUnoccupied returns an error if the machine already belongs to a Machine, to a manifest or to an unknown
// Kubernetes cluster. The Machine that has claimed this Host is allowed: the host may have lost the cluster key, for
// example if a reboot restored authorized_keys.
func checkUnoccupied(h *kubeone.Host, seen observed.Host) error {
	name := h.Name
	switch m := seen.Marker; {
	case m != nil && h.Status.Claim != nil && m.ID == string(h.Status.Claim.UID):
		return nil
	case m != nil && m.Machine != "":
		return fmt.Errorf("%s belongs to Machine %s in the cluster %s; delete that Machine to free it", name,
			m.Machine, m.Cluster)
	case m != nil:
		return fmt.Errorf("%s is in the manifest of the cluster %s; to free it, run kubeone reset --host %s with "+
			"that manifest",
			name, m.Cluster, name)
	case seen.KubeletConf == observed.Yes || seen.EtcdData == observed.Yes || seen.PKI == observed.Yes:
		return fmt.Errorf("%s has a Kubernetes installation that kubeone did not create; a pool host must be empty",
			name)
	}
	return nil
}

func (a *Adder) inspectBastion(ctx context.Context, at host.Target, c *Candidate) error {
	at.AsUser = true
	c.bastion = a.SSH.Host(at)
	keys, err := readHostKeys(ctx, c.bastion, at)
	if err != nil {
		return err
	}
	c.Contacts = append(firstContacts(c.bastion), c.Contacts...)
	c.Host.Spec.Bastion = &kubeone.Bastion{
		Address: at.Address, Port: int32(at.Port), User: at.User, HostKeys: keys, //nolint:gosec // validated: a port
	}
	return nil
}

// findExisting returns all existing Hosts. If the candidate already exists as a Host, it sets c.Host to that Host, and
// c.Known. It returns an error if a Host with the same name has a different connection or different fields, or if the
// same machine is already a Host with another name.
func (a *Adder) findExisting(ctx context.Context, c *Candidate) ([]kubeone.Host, error) {
	all, err := List(ctx, a.Client)
	if err != nil && !errors.Is(err, errNoPool) {
		return nil, err
	}
	want := c.Host
	for i := range all {
		existing := &all[i]
		switch {
		case existing.Name != want.Name && sameConnection(existing, want):
			return nil, fmt.Errorf("this machine is already in the pool as Host %s", existing.Name)
		case existing.Name == want.Name && (!sameConnection(existing, want) || existing.Spec.User != want.Spec.User):
			return nil, fmt.Errorf("Host %s already exists with a different connection (%s@%s port %d, or another "+
				"bastion); change it with kubectl edit host %s, or remove it with kubeone host remove %s", existing.Name,
				existing.Spec.User, existing.Spec.Address, existing.Spec.Port, existing.Name, existing.Name)
		case existing.Name == want.Name:
			c.Host, c.Known = existing, true
		}
	}
	if c.Known {
		return all, a.checkDescription(want, c.Host)
	}
	return all, nil
}

// sameConnection reports whether two Hosts have the same address, port and bastion; their users may differ. If other
// has no bastion, any bastion matches, because a Host that is added again need not specify it.
func sameConnection(h, other *kubeone.Host) bool {
	if h.Spec.Address != other.Spec.Address || h.Spec.Port != other.Spec.Port {
		return false
	}
	a, b := h.Spec.Bastion, other.Spec.Bastion
	return b == nil || a != nil && a.Address == b.Address && a.Port == b.Port && a.User == b.User
}

// checkDescription returns an error if flags differ from the existing Host, because adding the Host again does not
// change it.
func (*Adder) checkDescription(want, existing *kubeone.Host) error {
	for key, value := range want.Labels {
		if existing.Labels[key] != value {
			return fmt.Errorf("Host %s already exists; label it with kubectl label host %s %s=%s", existing.Name,
				existing.Name,
				key, value)
		}
	}
	if a := want.Spec.PrivateAddress; a != "" && a != cmp.Or(existing.Spec.PrivateAddress, existing.Spec.Address) {
		return fmt.Errorf("Host %s already exists with the private address %q; change it with kubectl edit host %s",
			existing.Name, cmp.Or(existing.Spec.PrivateAddress, existing.Spec.Address), existing.Name)
	}
	if d := want.Spec.FailureDomain; d != "" && d != existing.Spec.FailureDomain {
		return fmt.Errorf("Host %s already exists in the failure domain %q; change it with kubectl edit host %s",
			existing.Name, existing.Spec.FailureDomain, existing.Name)
	}
	return nil
}

// maxHostKeys limits the number of SSH host keys in a Host.
const maxHostKeys = 8

// readHostKeys returns the SSH host keys that the machine reports and those seen on the first connection to it, sorted.
// They are in authorized_keys format without comments.
func readHostKeys(ctx context.Context, h host.Host, at host.Target) ([]string, error) {
	result, err := h.Run(ctx, host.Cmd{Name: "read its host keys", Script: hostKeysScript})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range bytes.Lines(result.Stdout) {
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || len(line) > 1024 || len(keys) == maxHostKeys {
			continue
		}
		keys[strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))] = true
	}
	for _, c := range firstContacts(h) {
		if c.Address == net.JoinHostPort(at.Address, strconv.Itoa(at.Port)) { // excludes the keys of bastions
			keys[strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.Key)))] = true
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: the machine does not report its SSH host keys", h.Name())
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

func firstContacts(h host.Host) []host.FirstContact {
	if f, ok := h.(host.FirstContacter); ok {
		return f.FirstContacts()
	}
	return nil
}

// Add adds an inspected machine to the pool as a Host. It approves the host keys, authorizes the cluster key, tests a
// login with it, and then creates the object. Therefore a Host exists only if a login with the cluster key has
// succeeded. If Add fails, it revokes the key again. Add is idempotent.
func (a *Adder) Add(ctx context.Context, c Candidate) error {
	if err := a.SSH.Approve(c.Contacts...); err != nil {
		return err
	}
	err := a.addHost(ctx, c)
	if err == nil || c.Known {
		return err
	}
	return a.undoAuthorization(ctx, c, err)
}

// undoAuthorization revokes the key on a machine that could not be added because of err, and returns err. If the Host
// exists, the key is needed and stays: another run created the Host, or only the answer of the API server was lost. In
// this case it returns nil.
func (a *Adder) undoAuthorization(ctx context.Context, c Candidate, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	existing := &kubeone.Host{}
	switch getErr := a.Client.Get(ctx, client.ObjectKeyFromObject(c.Host), existing); {
	case getErr == nil && sameConnection(existing, c.Host):
		return nil
	case getErr != nil && !apierrors.IsNotFound(getErr):
		return fmt.Errorf("%w; the cluster key stays in authorized_keys, because it is unknown whether the Host exists",
			err)
	}
	if undo := revokeKey(ctx, c.conn, c.Host.Spec.User, a.Key.PublicKey()); undo != nil {
		return fmt.Errorf("%w; the cluster key stays in authorized_keys, because removing it failed: %w", err, undo)
	}
	return err
}

// undoTimeout limits undoAuthorization.
const undoTimeout = 30 * time.Second

func (a *Adder) addHost(ctx context.Context, c Candidate) error {
	key := a.Key.PublicKey()
	if c.bastion != nil {
		if err := authorizeKey(ctx, c.bastion, c.Host.Spec.Bastion.User, onBastions, key); err != nil {
			return err
		}
	}
	if err := authorizeKey(ctx, c.conn, c.Host.Spec.User, onHosts, key); err != nil {
		return err
	}
	if err := a.tryLogin(ctx, c.Host); err != nil {
		return err
	}
	if c.Known {
		return nil
	}
	return apicall.Wrap("create the Host "+c.Host.Name, "", a.Client.Create(ctx, c.Host))
}

func authorizeKey(ctx context.Context, h host.Host, user, options string, key ssh.PublicKey) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "authorize the cluster's key", Script: authorizeScript,
		Args: []string{user, authorizedKeysLine(options, key)},
	})
	return err
}

// tryLogin tests whether a login with the cluster key succeeds.
func (a *Adder) tryLogin(ctx context.Context, h *kubeone.Host) error {
	at, err := provider.TargetOf(h)
	if err != nil {
		return err
	}
	pool := a.loginPool()
	defer func() { _ = pool.Close() }() // a failed close has no effect
	_, err = pool.Host(at).Run(ctx, host.Cmd{Name: "log in with the cluster's key", Script: ":"})
	return err
}

func (a *Adder) loginPool() SSHPool {
	if a.Login != nil {
		return a.Login()
	}
	return provider.OpenPool(a.Key)
}
