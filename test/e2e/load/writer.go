package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	namespace = "load"
	// page is the number of writes in one ConfigMap.
	page = 100
	// attemptTimeout is the limit of one attempt.
	attemptTimeout = 5 * time.Second
	// enough is the number of retries within which a request counts as served.
	enough = 2
)

// writer writes 1, 2, 3, … and reads each back. Every number has its own key, so that all can be read later.
type writer struct {
	api   rest.Interface
	every time.Duration
	calls calls
	acked int // all numbers up to this one were acknowledged
	wrong []string
}

func newWriter(api rest.Interface, every time.Duration) *writer {
	return &writer{api: api, every: every, calls: calls{Errors: map[string]int{}}}
}

// writeNumbers works until ctx ends.
func (w *writer) writeNumbers(ctx context.Context) {
	for n := 1; awaitNext(ctx, w.every) && w.writeAndRead(ctx, n); n++ {
	}
}

// writeAndRead writes a number and reads it back. It returns false when ctx ends before.
func (w *writer) writeAndRead(ctx context.Context, n int) bool {
	if !w.calls.attemptRequest(ctx, func(ctx context.Context) error { return w.writeNumber(ctx, n) }) {
		return false
	}
	w.acked = n
	got := 0
	if !w.calls.attemptRequest(ctx, func(ctx context.Context) (err error) {
		got,
			err = w.readLast(ctx, n)
		return err
	}) {
		return false
	}
	if got != n {
		w.wrong = append(w.wrong, fmt.Sprintf("read %d after %d was acknowledged", got, n))
	}
	return true
}

func pageName(n int) string { return fmt.Sprintf("writes-%05d", n/page) }

// writeNumber makes one attempt. It is idempotent: an earlier attempt may have succeeded without an answer.
func (w *writer) writeNumber(ctx context.Context, n int) error {
	key := strconv.Itoa(n)
	if n%page == 0 || n == 1 {
		object := corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: pageName(n)},
			Data:       map[string]string{key: key, "last": key},
		}
		err := w.api.Post().MaxRetries(0).Namespace(namespace).Resource("configmaps").Body(&object).Do(ctx).Error()
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: key, "last": key}})
	if err != nil {
		return err
	}
	return w.api.Patch(types.MergePatchType).MaxRetries(0).Namespace(namespace).Resource("configmaps").
		Name(pageName(n)).Body(patch).Do(ctx).Error()
}

// readLast reads the newest number in the page of n.
func (w *writer) readLast(ctx context.Context, n int) (int, error) {
	var object corev1.ConfigMap
	if err := w.api.Get().MaxRetries(0).Namespace(namespace).Resource("configmaps").Name(pageName(n)).Do(ctx).
		Into(&object); err != nil {
		return 0, err
	}
	return strconv.Atoi(object.Data["last"])
}

// reportWrites reads back every acknowledged write.
func (w *writer) reportWrites(ctx context.Context) (Client, error) {
	c := Client{Acknowledged: w.acked, calls: w.calls, Wrong: w.wrong}
	found := map[string]bool{}
	for first := 0; first <= w.acked; first += page {
		var object corev1.ConfigMap
		err := w.api.Get().Namespace(namespace).Resource("configmaps").Name(pageName(first)).Do(ctx).Into(&object)
		if err != nil && !apierrors.IsNotFound(err) {
			return c, err
		}
		for key := range object.Data {
			found[key] = true
		}
	}
	for n := 1; n <= w.acked; n++ {
		if !found[strconv.Itoa(n)] {
			c.Lost = append(c.Lost, n)
		}
	}
	return c, nil
}

// makeNamespace creates the namespace again, without the writes of an earlier load. It retries errors, because an API
// server may be restarting.
func makeNamespace(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	namespaces := client.CoreV1().Namespaces()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for {
		err := namespaces.Delete(ctx, namespace, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			if _, err = namespaces.Create(ctx, object, metav1.CreateOptions{}); err == nil {
				return nil
			}
		}
		if !awaitNext(ctx, time.Second) {
			return errors.Join(fmt.Errorf("make namespace %s", namespace), err)
		}
	}
}
