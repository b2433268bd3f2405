package load

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	app      = "web"
	replicas = 6
	// minAvailable is the limit of the disruption budget.
	minAvailable = 5
	port         = 8080
)

// createWorkload creates Deployment, disruption budget and Service. It waits until all pods are ready and counted by
// the budget.
func createWorkload(ctx context.Context, client kubernetes.Interface, image string) error {
	if _, err := client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(image),
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the Deployment: %w", err)
	}
	if _, err := client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, newBudget(),
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the disruption budget: %w", err)
	}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, newService(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the Service: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		got, err := client.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, app, metav1.GetOptions{})
		if err == nil && got.Status.CurrentHealthy == replicas {
			return nil
		}
		if !awaitNext(ctx, 200*time.Millisecond) {
			return fmt.Errorf("%d of %d pods are ready: %w", got.Status.CurrentHealthy, replicas, ctx.Err())
		}
	}
}

func appLabels() map[string]string { return map[string]string{"app": app} }

// newDeployment returns the workload. A terminating pod answers for two more seconds, so that nodes can take it out of
// the Service. Its probes are patient, because a busy machine is not what the load measures.
func newDeployment(image string) *appsv1.Deployment {
	grace, count := int64(10), int32(replicas)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: appLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: appLabels()},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{
						Name: app, Image: image, ImagePullPolicy: corev1.PullNever,
						Args: []string{"netexec", fmt.Sprintf("--http-port=%d", port), "--udp-port=-1",
							"--delay-shutdown=2"},
						ReadinessProbe: &corev1.Probe{
							ProbeHandler: corev1.ProbeHandler{
								HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(port)},
							},
							PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 3,
						},
					}},
				},
			},
		},
	}
}

func newBudget() *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: appLabels()},
		},
	}
}

func newService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: appLabels(),
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port), NodePort: nodePort}},
		},
	}
}
