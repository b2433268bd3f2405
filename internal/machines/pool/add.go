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

// Machine is a machine to be added as a Host.
type Machine struct {
	// At is its SSH target. User and Port must be set, as the cluster uses them too.
	At host.Target
	// PrivateAddress is the IP address of its Node; "" is the address in At, or the machine's only address.
	PrivateAddress string
	FailureDomain  string
	Labels         map[string]string
}

// Candidate is an inspected Machine that may become a Host.
type Candidate struct {
	Host   *kubeone.Host
	System observed.Host
	// Contacts are the first contacts on the way to it, outermost bastion first.
	Contacts []host.FirstContact
	// Known says that the same Host already exists.
	Known bool

	conn    host.Host
	bastion host.Host // nil if there is none
}

// Adder adds machines to the pool.
type Adder struct {
	Client client.Client  // of the cluster's API
	SSH    *sshpool.Pool  // logs in as the operator
	Key    ssh.Signer     // the cluster's key
	Login  func() SSHPool // returns a pool that uses Key only; nil uses OpenPool
}

// SSHPool is the part of sshpool.Pool that logs in.
type SSHPool interface {
	Host(host.Target) host.Host
	io.Closer
}

// checkNames refuses a Host that has the same name as one added with it.
func checkNames(h *kubeone.Host, beside []Candidate) error {
	for _, other := range beside {
		if other.Host.Name == h.Name {
			return fmt.Errorf("%s and %s have the same hostname %s; name each with --name",
				other.Host.Spec.Address, h.Spec.Address, h.Name)
		}
	}
	return nil
}

// Inspect logs in to a machine as the operator and checks whether it may become a Host together with beside. It changes
// nothing.
//
// The error is that of the SSH connection (*host.Error), or says why the machine is refused.
func (a *Adder) Inspect(ctx context.Context, m Machine, beside ...Candidate) (Candidate, error) {
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
	if c.Host.Spec.HostKeys, err = readHostKeys(ctx, c.conn, m.At); err != nil {
		return c, err
	}
	c.Contacts = firstContacts(c.conn)
	if len(m.At.Bastions) > 0 {
		if err := a.inspectBastion(ctx, m.At.Bastions[0], &c); err != nil {
			return c, err
		}
	}
	if err := checkNames(c.Host, beside); err != nil {
		return c, err
	}
	all, err := a.findExisting(ctx, &c)
	if err != nil {
		return c, err
	}
	if err := checkUnoccupied(c.Host, c.System); err != nil || c.Known {
		return c, err
	}
	if c.Host.Spec.PrivateAddress, err = choosePrivateAddress(m, c.System); err != nil {
		return c, err
	}
	for _, other := range beside {
		all = append(all, *other.Host)
	}
	for i := range all {
		if is := &all[i]; is.Name != name && provider.SameAddress(is, c.Host) {
			return c, fmt.Errorf("%s would have the address %s of the Host %s; set the address for other Nodes with "+
				"--private-address", name, provider.NodeAddress(is), is.Name)
		}
	}
	return c, a.checkNameFree(ctx, name)
}

// choosePrivateAddress returns the Node's address if it differs from the SSH address, for example behind NAT or with a
// DNS name. The kubelet's serving certificate is approved for the Host's addresses only.
func choosePrivateAddress(m Machine, is observed.Host) (string, error) {
	own := is.Addresses
	switch {
	case m.PrivateAddress != "":
		return m.PrivateAddress, nil
	case slices.Contains(own, m.At.Address):
		return "", nil
	case len(own) == 1:
		return own[0], nil
	case len(own) == 0:
		return "", fmt.Errorf("%s: the machine does not report its addresses; set the address for other Nodes with "+
			"--private-address", m.At.DisplayName())
	}
	return "", fmt.Errorf("%s: the machine does not have the address %s, but %s; choose the address for other Nodes "+
		"with --private-address", m.At.DisplayName(), m.At.Address, strings.Join(own, ", "))
}

// checkNameFree refuses the name of an existing Node.
func (a *Adder) checkNameFree(ctx context.Context, name string) error {
	switch err := a.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); {
	case err == nil:
		return fmt.Errorf("Node %s already exists; give the Host another name with --name", name)
	case !apierrors.IsNotFound(err):
		return apicall.Wrap("read Node "+name, "", err)
	}
	return nil
}

// checkUnoccupied returns an error if the host already belongs to a Machine, a manifest or an unknown Kubernetes. A
// Host's own Machine is allowed: the host may have lost the cluster's key, for example if a reboot rewrote
// authorized_keys.
func checkUnoccupied(h *kubeone.Host, is observed.Host) error {
	name := h.Name
	switch m := is.Marker; {
	case m != nil && h.Status.Claim != nil && m.ID == string(h.Status.Claim.UID):
		return nil
	case m != nil && m.Machine != "":
		return fmt.Errorf("%s belongs to Machine %s of the cluster %s; delete that Machine to free it", name,
			m.Machine, m.Cluster)
	case m != nil:
		return fmt.Errorf("%s is in the manifest of the cluster %s; to empty it, run kubeone reset --host %s there",
			name, m.Cluster, name)
	case is.KubeletConf == observed.Yes || is.EtcdData == observed.Yes || is.PKI == observed.Yes:
		return fmt.Errorf("%s has a Kubernetes installation that is not kubeone's; a host of the pool must be empty",
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

// findExisting sets c.Known if the Host exists. It refuses a Host of the same name for another machine, and the same
// machine under another name. It returns all existing Hosts.
func (a *Adder) findExisting(ctx context.Context, c *Candidate) ([]kubeone.Host, error) {
	all, err := List(ctx, a.Client)
	if err != nil && !errors.Is(err, errNoPool) {
		return nil, err
	}
	want := c.Host
	for i := range all {
		is := &all[i]
		switch {
		case is.Name != want.Name && sameConnection(is, want):
			return nil, fmt.Errorf("this machine is already in the pool, as the Host %s", is.Name)
		case is.Name == want.Name && (!sameConnection(is, want) || is.Spec.User != want.Spec.User):
			return nil, fmt.Errorf("the Host %s already exists, at %s@%s port %d or behind another bastion; change it "+
				"with kubectl edit host %s, or remove it with kubeone host remove %s", is.Name, is.Spec.User,
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

// sameConnection reports whether two Hosts have the same address, port and bastion; users may differ. An other without
// a bastion matches any, since a Host that is added again need not name it.
func sameConnection(is, other *kubeone.Host) bool {
	if is.Spec.Address != other.Spec.Address || is.Spec.Port != other.Spec.Port {
		return false
	}
	a, b := is.Spec.Bastion, other.Spec.Bastion
	return b == nil || a != nil && a.Address == b.Address && a.Port == b.Port && a.User == b.User
}

// checkDescription refuses flags that differ from the existing Host, because adding it again changes nothing.
func (*Adder) checkDescription(want, is *kubeone.Host) error {
	for key, value := range want.Labels {
		if is.Labels[key] != value {
			return fmt.Errorf("the Host %s already exists; label it with kubectl label host %s %s=%s", is.Name, is.Name,
				key, value)
		}
	}
	if a := want.Spec.PrivateAddress; a != "" && a != cmp.Or(is.Spec.PrivateAddress, is.Spec.Address) {
		return fmt.Errorf("the Host %s already exists, with the private address %q; change it with kubectl edit host %s",
			is.Name, cmp.Or(is.Spec.PrivateAddress, is.Spec.Address), is.Name)
	}
	if d := want.Spec.FailureDomain; d != "" && d != is.Spec.FailureDomain {
		return fmt.Errorf("the Host %s already exists, in the failure domain %q; change it with kubectl edit host %s",
			is.Name, is.Spec.FailureDomain, is.Name)
	}
	return nil
}

// mostKeys limits the host keys of a Host.
const maxHostKeys = 8

// readHostKeys returns the SSH host keys that the machine itself reports, and those of first contacts, sorted. They are
// in authorized_keys format without comments.
func readHostKeys(ctx context.Context, h host.Host, at host.Target) ([]string, error) {
	said, err := h.Run(ctx, host.Cmd{Name: "read its host keys", Script: hostKeysScript})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range bytes.Lines(said.Stdout) {
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || len(line) > 1024 || len(keys) == maxHostKeys {
			continue
		}
		keys[strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))] = true
	}
	for _, c := range firstContacts(h) {
		if c.Address == net.JoinHostPort(at.Address, strconv.Itoa(at.Port)) { // not a bastion's
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

// Add makes an inspected machine a Host. It approves the contacts, authorizes the cluster's key, tests a login with it,
// and then creates the object. So every Host has been logged in to with the cluster's key. A failure revokes the key
// again. Add is idempotent.
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

// undoAuthorization revokes the key on a machine that did not become a Host because of err. If the object exists,
// another run created it, or the API server's answer was lost. Then the key is needed and stays.
func (a *Adder) undoAuthorization(ctx context.Context, c Candidate, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	is := &kubeone.Host{}
	switch looked := a.Client.Get(ctx, client.ObjectKeyFromObject(c.Host), is); {
	case looked == nil && sameConnection(is, c.Host):
		return nil
	case looked != nil && !apierrors.IsNotFound(looked):
		return fmt.Errorf("%w; the cluster's key stays in authorized_keys, because it is unknown whether the Host exists",
			err)
	}
	if undo := revokeKey(ctx, c.conn, c.Host.Spec.User, a.Key.PublicKey()); undo != nil {
		return fmt.Errorf("%w; the cluster's key stays in authorized_keys, because removing it failed: %w", err, undo)
	}
	return err
}

// undoTimeout limits undoAuthorize.
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

// tryLogin logs in with the cluster's key.
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
