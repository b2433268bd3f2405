package settings

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"kubeone/internal/cluster/apicall"
)

// PublishEndpoint writes the API endpoint, "host:port", to the objects that joining hosts read. It first changes
// cluster-info, if that exists, and then the kubeadm configuration, which also receives the names for the API server
// certificates. Therefore the kubeadm configuration shows whether the move is complete. Other fields stay. It is
// idempotent.
func (s Setter) PublishEndpoint(ctx context.Context, endpoint string, names []string) error {
	err := s.editConfigMap(ctx, metav1.NamespacePublic, "cluster-info", "kubeconfig",
		func(text string) (string, error) {
			config, err := clientcmd.Load([]byte(text))
			if err != nil {
				return "", err
			}
			for _, c := range config.Clusters {
				c.Server = "https://" + endpoint
			}
			out, err := clientcmd.Write(*config)
			return string(out), err
		})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return s.editConfigMap(ctx, metav1.NamespaceSystem, "kubeadm-config", "ClusterConfiguration",
		func(text string) (string, error) {
			var config map[string]any
			if err := yaml.Unmarshal([]byte(text), &config); err != nil {
				return "", err
			}
			if config["kind"] != "ClusterConfiguration" {
				return "", fmt.Errorf("it does not contain a ClusterConfiguration")
			}
			config["controlPlaneEndpoint"] = endpoint
			server, ok := config["apiServer"].(map[string]any)
			if !ok {
				server = map[string]any{}
				config["apiServer"] = server
			}
			server["certSANs"] = names
			out, err := yaml.Marshal(config)
			return string(out), err
		})
}

// editConfigMap calls change with the text of one key in a ConfigMap and saves the result if it differs.
func (s Setter) editConfigMap(ctx context.Context, namespace, name, key string,
	change func(string) (string, error)) error {
	maps := s.Kubernetes.CoreV1().ConfigMaps(namespace)
	return apicall.Retry(ctx, "change ConfigMap", name, func(ctx context.Context) error {
		held, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := change(held.Data[key])
		if err != nil {
			return fmt.Errorf("%s in ConfigMap %s/%s cannot be changed: %w", key, namespace, name, err)
		}
		if text == held.Data[key] {
			return nil
		}
		if held.Data == nil {
			held.Data = map[string]string{}
		}
		held.Data[key] = text
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		return err
	})
}
