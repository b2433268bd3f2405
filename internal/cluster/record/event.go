package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/text/phrase"
)

// reporter is the reporting component in the Events of kubeone.
const reporter = "kubeone"

// maxMessageLength is the maximum length that the API allows for the message of an Event, in bytes.
const maxMessageLength = 1024

// Event is an action of a run on a node. It is stored as an Event of the Node, which kubectl describe node shows.
type Event struct {
	Node    string
	Reason  string // such as KubeOneUpgraded
	Message string // without secrets; shortened to 1024 bytes
	Warning bool   // the action failed
	RunID   string
	Time    time.Time
}

// WriteEvent writes an Event of a Node. It tries only once, because a run should not wait for its Events.
func (c Store) WriteEvent(ctx context.Context, e Event) error {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, apicall.OpTimeout)
	defer cancel()
	_, err := c.Kubernetes.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, e.newObject(),
		metav1.CreateOptions{FieldManager: apicall.FieldManager})
	return apicall.Wrap("write an Event", e.Node, err)
}

// newObject returns the Event in the form that kubelets use: in the default namespace, with the Node name as the UID of
// the Node.
func (e Event) newObject() *corev1.Event {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	when := metav1.NewTime(e.Time)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			// As in client-go; the reason distinguishes Events of the same instant.
			Name:        fmt.Sprintf("%s.%x.%s", e.Node, e.Time.UnixNano(), strings.ToLower(e.Reason)),
			Namespace:   metav1.NamespaceDefault,
			Annotations: map[string]string{apicall.RunIDAnnotation: e.RunID},
		},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: e.Node, UID: types.UID(e.Node)},
		Reason:         e.Reason, Message: phrase.Shorten(e.Message, maxMessageLength), Type: kind,
		FirstTimestamp: when, LastTimestamp: when, Count: 1,
		Source: corev1.EventSource{Component: reporter}, ReportingController: reporter, ReportingInstance: e.RunID,
	}
}
