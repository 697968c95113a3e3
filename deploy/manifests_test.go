// Package deploy tests the manifests in the folder kubernetes without a cluster: it builds them as
// `kubectl apply -k` does, and decodes them into the types of the API.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlay is the folder that has the replicas and their backends.
const overlay = "classroom"

// backends lists the variables that have the addresses of the backends.
var backends = []string{"ETCD_ENDPOINTS", "MYSQL_DSN", "REDIS_URL", "REDLOCK_URLS", "ZK_SERVERS"}

// secrets matches the names of variables whose values may be or contain passwords.
var secrets = regexp.MustCompile(`(TOKEN|PASSWORD|SECRET|_AUTH|_DSN|_URLS?|_READS)$`)

// stopping is the time that a replica needs after DRAIN: 2.5 s more for the drain, 15 s for the
// running requests, 5 s for the cancelled ones, and 3 s for the releases. See cli/serve.go.
const stopping = 25500 * time.Millisecond

// decoder returns a decoder that rejects unknown and repeated fields, and unknown kinds.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// decode decodes the documents of one file.
func decode(d runtime.Decoder, file []byte) (all []runtime.Object, err error) {
	for n, document := range strings.Split(string(file), "\n---\n") {
		if onlyComments(document) {
			continue
		}
		object, _, err := d.Decode([]byte(document), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n+1, err)
		}
		all = append(all, object)
	}
	return all, nil
}

// decodeKustomization decodes a kustomization.yaml. Unlike package yaml and kustomize itself, it
// rejects the name of a field in another case, such as nameSpace.
func decodeKustomization(file []byte) error {
	document, err := yaml.YAMLToJSONStrict(file)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(document, &types.Kustomization{})
	return errors.Join(append(unknown, err)...)
}

func onlyComments(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// TestFiles decodes each document of each file, also of those that no overlay uses.
func TestFiles(t *testing.T) {
	d, decoded := decoder(t), 0
	err := filepath.WalkDir("kubernetes", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			if strings.HasSuffix(path, ".yml") {
				t.Errorf("%s: name it .yaml, otherwise this test does not read it", path)
			}
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		decoded++
		if filepath.Base(path) == "kustomization.yaml" {
			if err := decodeKustomization(text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return nil
		}
		if objects, err := decode(d, text); err != nil || len(objects) == 0 {
			t.Errorf("%s: %d documents, %v", path, len(objects), err)
		}
		return nil
	})
	if err != nil || decoded < 10 {
		t.Fatalf("%d files, %v", decoded, err)
	}
}

// TestDecodeIsStrict checks that the decoder rejects what a cluster would ignore or reject.
func TestDecodeIsStrict(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
	d := decoder(t)
	for document, good := range map[string]bool{
		service + "spec: {clusterIP: None}\n":                                                     true,
		service + "spec: {clusterIp: None}\n":                                                     false,
		service + "spec: {clusterIP: None, clusterIP: None}\n":                                    false,
		service + "spec: {ports: [{port: http}]}\n":                                               false,
		service + "---\n" + service + "spec: {portz: []}\n":                                       false,
		"apiVersion: v2\nkind: Service\nmetadata: {name: a}\n":                                    false,
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {container: []}}}\n":      false,
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {maxUnavailable: 1, min: 2}\n":   false,
		"apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {restartPolicy: Never}}, x: 1}": false,
	} {
		if _, err := decode(d, []byte(document)); (err == nil) != good {
			t.Errorf("decode(%q) = %v, want success = %v", document, err, good)
		}
	}
	for document, good := range map[string]bool{"namespace: a\n": true, "nameSpace: a\n": false, "namespaces: a\n": false, "namespace: a\nnamespace: b\n": false} {
		if err := decodeKustomization([]byte(document)); (err == nil) != good {
			t.Errorf("decodeKustomization(%q) = %v, want success = %v", document, err, good)
		}
	}
}

// build builds a folder of manifests as `kubectl apply -k` does, and decodes the result.
func build(t *testing.T, folder string) *manifests {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	err := filepath.WalkDir("kubernetes", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return memory.WriteFile(path, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, filepath.Join("kubernetes", folder))
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(decoder(t), text)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return sort(t, folder, objects)
}

// manifests has the objects of one build, by kind.
type manifests struct {
	folder      string
	deployments map[string]*appsv1.Deployment
	sets        map[string]*appsv1.StatefulSet
	jobs        map[string]*batchv1.Job
	services    map[string]*corev1.Service
	budgets     map[string]*policyv1.PodDisruptionBudget
	policies    map[string]*networkingv1.NetworkPolicy
	configs     map[string]*corev1.ConfigMap
	secrets     map[string]*corev1.Secret
	namespaces  map[string]*corev1.Namespace
}

func sort(t *testing.T, folder string, objects []runtime.Object) *manifests {
	t.Helper()
	m := &manifests{
		folder,
		map[string]*appsv1.Deployment{},
		map[string]*appsv1.StatefulSet{},
		map[string]*batchv1.Job{},
		map[string]*corev1.Service{},
		map[string]*policyv1.PodDisruptionBudget{},
		map[string]*networkingv1.NetworkPolicy{},
		map[string]*corev1.ConfigMap{},
		map[string]*corev1.Secret{},
		map[string]*corev1.Namespace{},
	}
	spaces := map[string]bool{}
	for _, object := range objects {
		switch o := object.(type) {
		case *appsv1.Deployment:
			m.deployments[o.Name] = o
		case *appsv1.StatefulSet:
			m.sets[o.Name] = o
		case *batchv1.Job:
			m.jobs[o.Name] = o
		case *corev1.Service:
			m.services[o.Name] = o
		case *policyv1.PodDisruptionBudget:
			m.budgets[o.Name] = o
		case *networkingv1.NetworkPolicy:
			m.policies[o.Name] = o
		case *corev1.ConfigMap:
			m.configs[o.Name] = o
		case *corev1.Secret:
			m.secrets[o.Name] = o
		case *corev1.Namespace:
			m.namespaces[o.Name] = o
			continue
		default:
			t.Errorf("%s: this test does not check objects of type %T", folder, object)
		}
		if o, ok := object.(metav1.Object); ok {
			spaces[o.GetNamespace()] = true
		}
	}
	if len(spaces) != 1 || spaces[""] {
		t.Errorf("%s: the objects are in the namespaces %v, want one", folder, slices.Collect(maps.Keys(spaces)))
	}
	return m
}

// pods returns the pod templates by the name of what creates the pods.
func (m *manifests) pods() map[string]corev1.PodTemplateSpec {
	all := map[string]corev1.PodTemplateSpec{}
	for name, o := range m.deployments {
		all[name] = o.Spec.Template
	}
	for name, o := range m.sets {
		all[name] = o.Spec.Template
	}
	for name, o := range m.jobs {
		all[name] = o.Spec.Template
	}
	return all
}

// environment returns the variables of a container, with values from config maps and secrets. It
// reports references to objects or keys that do not exist.
func (m *manifests) environment(t *testing.T, c corev1.Container) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, from := range c.EnvFrom {
		config := m.configs[from.ConfigMapRef.Name]
		if config == nil {
			t.Fatalf("%s: container %s: no config map %s", m.folder, c.Name, from.ConfigMapRef.Name)
		}
		maps.Copy(values, config.Data)
	}
	for _, v := range c.Env {
		if _, twice := values[v.Name]; twice {
			t.Errorf("%s: container %s has two values of %s", m.folder, c.Name, v.Name)
		}
		switch {
		case v.ValueFrom == nil:
			values[v.Name] = v.Value
		case v.ValueFrom.FieldRef != nil:
			values[v.Name] = v.ValueFrom.FieldRef.FieldPath
		case v.ValueFrom.SecretKeyRef != nil:
			ref := v.ValueFrom.SecretKeyRef
			secret := m.secrets[ref.Name]
			if secret == nil && ref.Optional != nil && *ref.Optional {
				continue
			}
			if secret == nil || len(secret.Data[ref.Key]) == 0 {
				t.Fatalf("%s: container %s: %s: no secret %s with the key %s", m.folder, c.Name, v.Name, ref.Name, ref.Key)
			}
			values[v.Name] = string(secret.Data[ref.Key])
		default:
			t.Errorf("%s: container %s: %s comes from %v, which this test does not check", m.folder, c.Name, v.Name, v.ValueFrom)
		}
	}
	return values
}

// replica returns the deployment of the replicas, and the environment of their container.
func (m *manifests) replica(t *testing.T) (*appsv1.Deployment, map[string]string) {
	t.Helper()
	d := m.deployments["oversell"]
	if d == nil || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%s has no deployment oversell with one container", m.folder)
	}
	return d, m.environment(t, d.Spec.Template.Spec.Containers[0])
}

// variables returns the environment variables of `oversell serve`: the tags of its settings.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../cli/serve.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("env"), ",")
		all[name] = true
		return true
	})
	if !all["MYSQL_DSN"] || !all["LEASE"] {
		t.Fatalf("cli/serve.go has the variables %v", all)
	}
	return all
}

// TestVariables checks that a replica has each variable of the manifests, and an address of each
// backend.
func TestVariables(t *testing.T) {
	known := variables(t)
	known["GOMEMLIMIT"] = true // of the Go runtime
	_, env := build(t, overlay).replica(t)
	for name := range env {
		if !known[name] {
			t.Errorf("%s sets %s, which oversell serve does not have", overlay, name)
		}
	}
	for _, name := range backends {
		if env[name] == "" || strings.Contains(env[name], "127.0.0.1") {
			t.Errorf("%s: %s is %q, want an address in the cluster", overlay, name, env[name])
		}
	}
	if n := len(strings.Split(env["REDLOCK_URLS"], ",")); n != 5 {
		t.Errorf("%s: redlock has %d masters, want 5", overlay, n)
	}
	if env["LAB"] != "true" || env["LAB_TOKEN"] == "" {
		t.Errorf("LAB=%s and LAB_TOKEN=%q: clients of the classroom set the stock, with a token", env["LAB"], env["LAB_TOKEN"])
	}
}

// TestClassroomAddresses checks that each address of a backend is a port of a Service.
func TestClassroomAddresses(t *testing.T) {
	m := build(t, overlay)
	_, env := m.replica(t)
	found := map[string]bool{}
	for _, name := range backends {
		for _, address := range regexp.MustCompile(`([a-z0-9.-]+):(\d+)`).FindAllStringSubmatch(env[name], -1) {
			host, port := address[1], address[2]
			found[host] = true
			pod, service, perPod := strings.Cut(host, ".")
			if !perPod {
				pod, service = "", host
			}
			s := m.services[service]
			if s == nil || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == port }) {
				t.Errorf("%s=%s: no Service %s with the port %s", name, env[name], service, port)
				continue
			}
			if !perPod {
				continue
			}
			set, number := strings.TrimRight(pod, "0123456789"), pod[strings.LastIndex(pod, "-")+1:]
			owner := m.sets[strings.TrimSuffix(set, "-")]
			if n, err := strconv.Atoi(number); owner == nil || err != nil || n >= int(*owner.Spec.Replicas) || owner.Spec.ServiceName != service || s.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("%s: %s is no pod of a StatefulSet with the headless Service %s", name, pod, service)
			}
		}
	}
	if len(found) != 8 {
		t.Errorf("found the hosts %v, want MySQL, five Redis, ZooKeeper and etcd", slices.Sorted(maps.Keys(found)))
	}
}

// TestSecrets checks that passwords and tokens are in Secrets only.
func TestSecrets(t *testing.T) {
	for _, folder := range []string{overlay, "load"} {
		m := build(t, folder)
		for name, config := range m.configs {
			for key, value := range config.Data {
				if secrets.MatchString(key) || regexp.MustCompile(`://[^/\s]*@|@tcp\(`).MatchString(value) {
					t.Errorf("%s: the config map %s has the secret %s", folder, name, key)
				}
			}
		}
		for name, pod := range m.pods() {
			for _, c := range pod.Spec.Containers {
				for _, v := range c.Env {
					if secrets.MatchString(v.Name) && v.Value != "" && v.Value != "yes" { // yes: MySQL draws one
						t.Errorf("%s: %s has %s in its manifest: put it into a Secret", folder, name, v.Name)
					}
				}
			}
		}
	}
}

// matches reports whether a selector matches the labels of a pod.
func matches(t *testing.T, selector *metav1.LabelSelector, pod map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(pod))
}

// TestSelectors checks that each selector matches the pods that it is for, and no others.
func TestSelectors(t *testing.T) {
	load := build(t, "load").jobs["load"].Spec.Template.Labels
	m := build(t, overlay)
	pods := m.pods()
	pods["load"] = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: load}}
	only := func(what, want string, selector *metav1.LabelSelector) {
		for name, pod := range pods {
			if matches(t, selector, pod.Labels) != (name == want) {
				t.Errorf("%s: %s selects the pods of %s = %v", overlay, what, name, name != want)
			}
		}
	}
	for name, o := range m.deployments {
		only("deployment "+name, name, o.Spec.Selector)
		for _, c := range o.Spec.Template.Spec.TopologySpreadConstraints {
			only("the spread of "+name, name, c.LabelSelector)
		}
	}
	for name, o := range m.sets {
		only("stateful set "+name, name, o.Spec.Selector)
	}
	for name, o := range m.services {
		only("service "+name, name, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
	}
	for name, o := range m.budgets {
		only("budget "+name, name, o.Spec.Selector)
	}
	for name, o := range m.policies {
		for pod, template := range pods {
			backend := pod != "oversell" && pod != "load"
			if matches(t, &o.Spec.PodSelector, template.Labels) != backend {
				t.Errorf("%s: network policy %s protects %s = %v", overlay, name, pod, !backend)
			}
		}
		only("the allowed source of "+name, "oversell", o.Spec.Ingress[0].From[0].PodSelector)
	}
}

// port reports whether a pod has the port, by name or by number.
func port(pod corev1.PodSpec, wanted intstr.IntOrString) bool {
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			if wanted.Type == intstr.String && p.Name == wanted.StrVal || wanted.Type == intstr.Int && p.ContainerPort == wanted.IntVal {
				return true
			}
		}
	}
	return false
}

// TestProbes checks that each server has probes of ports that it has, and Services too.
func TestProbes(t *testing.T) {
	m := build(t, overlay)
	pods := m.pods()
	for name, pod := range pods {
		for _, c := range pod.Spec.Containers {
			if c.ReadinessProbe == nil || c.LivenessProbe == nil {
				t.Errorf("%s: %s lacks a probe", overlay, name)
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				switch {
				case probe == nil, probe.Exec != nil:
				case probe.HTTPGet != nil && port(pod.Spec, probe.HTTPGet.Port):
				case probe.TCPSocket != nil && port(pod.Spec, probe.TCPSocket.Port):
				default:
					t.Errorf("%s: a probe of %s is for a port that it does not have: %v", overlay, name, probe.ProbeHandler)
				}
			}
		}
	}
	for name, s := range m.services {
		for _, p := range s.Spec.Ports {
			if !port(pods[name].Spec, p.TargetPort) {
				t.Errorf("%s: the service %s sends to the port %s, which its pods do not have", overlay, name, p.TargetPort.String())
			}
		}
	}
	d, env := m.replica(t)
	c := d.Spec.Template.Spec.Containers[0]
	if env["ADDR"] != fmt.Sprintf("0.0.0.0:%d", c.Ports[0].ContainerPort) {
		t.Errorf("%s: a replica listens on %s, and its port is %d", overlay, env["ADDR"], c.Ports[0].ContainerPort)
	}
	// All replicas share the backends, so a backend that fails must not take all of them away.
	if c.StartupProbe.HTTPGet.Path != "/readyz" || c.ReadinessProbe.HTTPGet.Path != "/healthz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("%s: the probes of a replica ask for the wrong paths", overlay)
	}
}

// TestRollingUpdate checks that an update or a drained node takes no capacity and no request away.
func TestRollingUpdate(t *testing.T) {
	m := build(t, overlay)
	d, env := m.replica(t)
	replicas := int(*d.Spec.Replicas)
	surge, err1 := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxSurge, replicas, true)
	down, err2 := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxUnavailable, replicas, false)
	if err1 != nil || err2 != nil || surge < 1 || down != 0 {
		t.Errorf("%s: an update starts %d replicas (%v) and ends %d (%v) first", overlay, surge, err1, down, err2)
	}
	budget := m.budgets["oversell"].Spec
	var evictable int
	var err error
	switch {
	case budget.MaxUnavailable != nil:
		evictable, err = intstr.GetScaledValueFromIntOrPercent(budget.MaxUnavailable, replicas, true)
	case budget.MinAvailable != nil:
		evictable, err = intstr.GetScaledValueFromIntOrPercent(budget.MinAvailable, replicas, true)
		evictable = replicas - evictable
	}
	if err != nil || evictable < 1 || evictable >= replicas {
		t.Errorf("%s: the budget allows the eviction of %d of %d replicas (%v)", overlay, evictable, replicas, err)
	}
	drain, err := time.ParseDuration(env["DRAIN"])
	if grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second; err != nil || drain < 5*time.Second || grace < drain+stopping {
		t.Errorf("%s: a replica is killed after %s, and needs DRAIN=%s (%v) and %s", overlay, grace, env["DRAIN"], err, stopping)
	}
	if spread := d.Spec.Template.Spec.TopologySpreadConstraints; len(spread) == 0 || spread[0].TopologyKey != corev1.LabelHostname || spread[0].WhenUnsatisfiable != corev1.DoNotSchedule {
		t.Errorf("%s: the replicas may run on one node", overlay)
	}
}

// TestRestricted checks that each pod satisfies the level restricted of the Pod Security Standards,
// which the namespaces enforce, and has the further limits that this repository wants.
func TestRestricted(t *testing.T) {
	for _, folder := range []string{overlay, "load"} {
		m := build(t, folder)
		for name, space := range m.namespaces {
			if space.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("%s: the namespace %s does not enforce the level restricted", folder, name)
			}
		}
		for name, template := range m.pods() {
			pod := template.Spec
			if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 ||
				s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: the pods of %s may run as root, or without a seccomp profile", folder, name)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
				t.Errorf("%s: the pods of %s get a token of the API, or variables of Services", folder, name)
			}
			for _, volume := range pod.Volumes {
				if volume.HostPath != nil {
					t.Errorf("%s: %s mounts a folder of the node", folder, name)
				}
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
					s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 || s.Privileged != nil {
					t.Errorf("%s: the container %s of %s has more rights than it needs", folder, c.Name, name)
				}
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: the container %s of %s lacks requests, or a limit of the memory", folder, c.Name, name)
				}
				for _, mount := range c.VolumeMounts {
					if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
						t.Errorf("%s: %s mounts %s, which is no volume", folder, name, mount.Name)
					}
				}
			}
		}
	}
}

// TestVersions checks that the classroom runs the images of docker-compose.yml, and that the
// document names the version of Kubernetes whose types this test uses.
func TestVersions(t *testing.T) {
	compose, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range build(t, overlay).pods() {
		image := pod.Spec.Containers[0].Image
		if name != "oversell" && !strings.Contains(string(compose), "image: "+image+"\n") {
			t.Errorf("%s runs %s, which docker-compose.yml does not", name, image)
		}
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`k8s\.io/api v0\.(\d+)`).FindSubmatch(module)
	if version == nil || !strings.Contains(string(document), fmt.Sprintf("Kubernetes 1.%s:", version[1])) {
		t.Errorf("docs/production.md does not name the version %q of go.mod", version)
	}
}

// TestVerdicts compares the verdicts of docs/production.md with those of the recorded matrix.
func TestVerdicts(t *testing.T) {
	text, err := os.ReadFile("../docs/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Rows []struct {
			Strategy  string
			Fenced    bool
			Summaries map[string]struct {
				Verdict      string
				Runs, Failed int
			}
		}
	}
	if err := yaml.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(document), "<!-- verdicts -->")
	tables, _, _ = strings.Cut(tables, "<!-- /verdicts -->")
	var hazards []string
	compared := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		switch {
		case len(cells) < 2 || strings.HasPrefix(cells[0], "---"):
			continue
		case cells[0] == "":
			hazards = cells[1:]
			continue
		}
		strategy, fenced := strings.CutSuffix(cells[0], " --fenced")
		for i, hazard := range hazards {
			want := ""
			for _, row := range recorded.Rows {
				if s := row.Summaries[hazard]; row.Strategy == strategy && row.Fenced == fenced {
					want = s.Verdict
					if s.Runs != 20 && s.Runs != 0 || s.Failed != 0 && s.Failed != s.Runs {
						t.Errorf("%s, %s: %d of %d runs failed, which the document does not say", cells[0], hazard, s.Failed, s.Runs)
					}
				}
			}
			if cells[i+1] != want {
				t.Errorf("%s, %s: %q in docs/production.md, and %q in docs/matrix.json", cells[0], hazard, cells[i+1], want)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("only %d verdicts were compared", compared)
	}
}

// program builds oversell, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oversell")
	command := exec.CommandContext(t.Context(), "go", "build", "-tags", "nomsgpack", "-o", path, ".")
	command.Dir = ".."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// TestProgram runs the program with the arguments and the variables of the manifests, without
// backends: a replica starts, answers the probes, and ends; the load finds no replica.
func TestProgram(t *testing.T) {
	oversell := program(t)
	t.Run(overlay, func(t *testing.T) {
		d, env := build(t, overlay).replica(t)
		checkReplica(t, oversell, d.Spec.Template.Spec.Containers[0], env)
	})
	t.Run("load", func(t *testing.T) {
		args := build(t, "load").jobs["load"].Spec.Template.Spec.Containers[0].Args
		target := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--target=") })
		if service := build(t, overlay).services["oversell"]; target < 0 || args[target] != fmt.Sprintf("--target=http://%s:%d", service.Name, service.Spec.Ports[0].Port) {
			t.Fatalf("the load goes to %q", args)
		}
		args[target] = "--target=http://127.0.0.1:1"
		out, err := exec.CommandContext(t.Context(), oversell, args...).CombinedOutput()
		if ended := (*exec.ExitError)(nil); !errors.As(err, &ended) || ended.ExitCode() != 1 {
			t.Errorf("oversell %q: %v, want status 1, because no service answers:\n%s", args, err, out)
		}
	})
}

// checkReplica starts a replica on a free port, and ends it.
func checkReplica(t *testing.T, oversell string, c corev1.Container, env map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	replica := exec.CommandContext(ctx, oversell, c.Args...)
	for name, value := range env {
		replica.Env = append(replica.Env, name+"="+value)
	}
	// Of repeated variables, the last one counts. A replica looks up the name of ZooKeeper when it
	// starts, and this name exists only in the cluster.
	replica.Env = append(replica.Env, "ADDR=127.0.0.1:0", "DRAIN=0s", "ZK_SERVERS=127.0.0.1:1")
	log, err := replica.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	serving := regexp.MustCompile(`msg=serving .*addr=(\S+)`)
	for chunk := make([]byte, 4096); !serving.Match(text); {
		n, err := log.Read(chunk)
		text = append(text, chunk[:n]...)
		if err != nil {
			t.Fatalf("the replica does not start (%v):\n%s", errors.Join(err, replica.Wait()), text)
		}
	}
	address := string(serving.FindSubmatch(text)[1])
	for path, want := range map[string]int{c.LivenessProbe.HTTPGet.Path: http.StatusOK, c.StartupProbe.HTTPGet.Path: http.StatusServiceUnavailable, "/metrics": http.StatusOK} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("GET %s: %s, want %d, without backends", path, answer.Status, want)
		}
	}
	if err := replica.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(log)
	if err := replica.Wait(); err != nil {
		t.Errorf("the replica ended with %v:\n%s%s", err, text, rest)
	}
}
