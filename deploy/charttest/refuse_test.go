package charttest

import (
	"strings"
	"testing"
)

// A value that is wrong is refused, and the message names its key.
func TestBadValuesAreRefused(t *testing.T) {
	for _, tt := range []struct{ values, key string }{
		// the schema: what is misspelt or of the wrong kind
		{"replicas: 2", "'replicas'"},
		{"replicaCount: two", "/replicaCount"},
		{"replicaCount: -1", "/replicaCount"},
		{"image: {tags: x}", "'tags'"},
		{"image: {repository: ''}", "/image/repository"},
		{"image: {digest: latest}", "/image/digest"},
		{"image: {pullPolicy: Sometimes}", "/image/pullPolicy"},
		{"image: {registry: ghcr.io/}", "/image/registry"},
		{"service: {ipFamilyPolicy: Both}", "/service/ipFamilyPolicy"},
		{"updateStrategy: {type: OnDelete}", "/updateStrategy/type"},
		{"podMonitor: {scheme: ftp}", "/podMonitor/scheme"},
		{"dnsPolicy: Cluster", "/dnsPolicy"},
		{"extraObjects: [1]", "/extraObjects/0"},
		{"configReload: yes", "/configReload"},
		{"persistence: {size: big}", "/persistence/size"},
		{"persistence: {accessModes: []}", "/persistence/accessModes"},
		{"service: {port: 70000}", "/service/port"},
		{"service: {type: ExternalName}", "/service/type"},
		{"ingress: {enabled: true}", "/ingress/hosts"},
		{"ingress: {hosts: [{paths: []}]}", "'host'"},
		{"ingress: {annotations: {a: 1}}", "/ingress/annotations/a"},
		{"gateway: {enabled: true}", "/gateway/parentRefs"},
		{"gateway: {timeouts: {request: never}}", "/gateway/timeouts/request"},
		{"autoscaling: {minReplicas: 0}", "/autoscaling/minReplicas"},
		{"autoscaling: {memory: {}}", "'memory'"},
		{"podDisruptionBudget: {maxUnavailable: some}", "/podDisruptionBudget/maxUnavailable"},
		{"topologySpread: {zones: Maybe}", "/topologySpread/zones"},
		{"networkPolicy: {upstream: {ports: [https]}}", "/networkPolicy/upstream/ports/0"},
		{"serviceMonitor: {interval: often}", "/serviceMonitor/interval"},
		{"resources: {limits: {memory: lots}}", "/resources/limits/memory"},
		{"resources: {limit: {}}", "'limit'"},
		{"memoryLimitPercent: 120", "/memoryLimitPercent"},
		{"probes: {readiness: {httpGet: {}}}", "'httpGet'"},
		{"extraEnv: [{value: x}]", "'name'"},
		{"secrets: {1KEY: {value: x}}", "'1KEY'"},
		{"secrets: {KEY: {}}", "/secrets/KEY"},
		{"secrets: {KEY: plain}", "/secrets/KEY"},
		{"secrets: {KEY: {name: s}}", "/secrets/KEY"},
		{"secrets: {KEY: {name: s, key: k, value: v}}", "/secrets/KEY"},
		{"adminToken: {secret: x}", "'secret'"},
		{"redis: {addrs: [redis]}", "/redis/addrs/0"},
		{"redis: {url: 'redis://user:password@redis:6379'}", "/redis/url"},
		{"redis: {url: 'redis://user@redis:6379'}", "/redis/url"},
		{"redis: {url: 'http://redis:6379'}", "/redis/url"},
		{"redis: {password: secret}", "/redis/password"},
		{"redis: {tls: {enabled: true, caFile: x}}", "'caFile'"},

		// the schema: Dewpoint's own configuration
		{"config: {upsteam: {}}", "'upsteam'"},
		{"config: {upstream: {base_url: llm.example}}", "/config/upstream/base_url"},
		{"config: {upstream: {api_key: sk-plain}}", "/config/upstream/api_key"},
		{"config: {upstream: {timeout: 30}}", "/config/upstream/timeout"},
		{"config: {listen: '127.0.0.1:8080'}", "/config/listen"},
		{"config: {admin: {token: x}}", "'token'"},
		{"config: {store: {type: postgres}}", "/config/store/type"},
		{"config: {store: {path: /tmp/x.db}}", "/config/store/path"},
		{"config: {store: {max_size: huge}}", "/config/store/max_size"},
		{"config: {store: {secret: a-long-secret-in-plain-text}}", "/config/store/secret"},
		{"config: {store: {redis: {password: plain}}}", "/config/store/redis/password"},
		{"config: {llms: {cheap: {base_url: 'https://x/v1'}}}", "'model'"},
		{"config: {models: {m: {encoding: p50k}}}", "/config/models/m/encoding"},
		{"config: {condenser: {type: magic}}", "/config/condenser/type"},
		{"config: {condenser: {type: noop, max_size: 3}}", "'max_size'"},
		{"config: {condenser: {attention_window: 3}}", "'attention_window'"},
		{"config: {condenser: {type: llm, max_size: many}}", "/config/condenser/max_size"},
		{"config: {condenser: {per_model: {gpt: {llm_config: x}}}}", "'llm_config'"},
		{"config: {condenser: {per_model: {gpt: {}}}}", "/config/condenser/per_model/gpt"},
		{"config: {condenser: {type: pipeline, condensers: [{max_size: 3}]}}", "/config/condenser/condensers/0"},
		{"config: {condenser: {type: pipeline, condensers: [{type: recent, stride: 3}]}}", "'stride'"},
		{"config: {tenants: [{name: a}]}", "'api_keys'"},
		{"config: {tenants: [{name: a b, api_keys: [{env: K}]}]}", "/config/tenants/0/name"},
		{"config: {tenants: [{name: a, api_keys: []}]}", "/config/tenants/0/api_keys"},
		{"config: {tenants: [{name: a, api_keys: [{sha256: abc}]}]}", "/config/tenants/0/api_keys/0/sha256"},
		{"config: {tenants: [{name: a, api_keys: [sk-plain]}]}", "/config/tenants/0/api_keys/0"},
		{"config: {tenants: [{name: a, api_keys: [{env: K}], condenser: {type: llm, stride: 2}}]}", "'stride'"},
		{"config: {tenants: {a b: {api_keys: [{env: K}]}}}", "'a b'"},
		{"config: {tenants: {a: {}}}", "'api_keys'"},
		{"config: {tenants: {a: {api_keys: [{env: K}], notifi: true}}}", "'notifi'"},
		{"config: {tenants: {a: {api_keys: [{sha256: abc}]}}}", "/config/tenants/a/api_keys/0/sha256"},
		{"config: {tenants: many}", "/config/tenants"},
		{"config: {tenants_dir: tenants}", "/config/tenants_dir"},
		{"tenantsFrom: [{}]", "/tenantsFrom/0"},
		{"tenantsFrom: [{configMap: a, secret: b}]", "/tenantsFrom/0"},
		{"tenantsFrom: [{secret: a}, {secret: a}]", "/tenantsFrom"},
		{"config: {log: {level: loud}}", "/config/log/level"},
		{"config: {limits: {max_body: -1}}", "/config/limits/max_body"},
		{"config: {shutdown: {timeout: 5 minutes}}", "/config/shutdown/timeout"},

		// the templates: what does not go together
		{"replicaCount: null", "replicaCount: is null"},
		{"{tenantsFrom: [{secret: b}], config: {tenants_dir: /etc/x}}", "config.tenants_dir: is where"},
		{"config: {tenants: {}}", "config.tenants: is empty"},
		{"config: {tenants: {a: null}}", "config.tenants: is empty"},
		{"config: {tenants: {a: {api_keys: [{env: NOWHERE}]}}}", "refers to NOWHERE"},
		{"updateStrategy: {type: RollingUpdate}", "updateStrategy.type: the embedded store"},
		{"replicaCount: 2", "replicaCount: 2 pods cannot share the embedded store"},
		{"autoscaling: {enabled: true}", "autoscaling.enabled: the embedded store allows one pod"},
		{"redis: {enabled: true}", "redis.addrs: is empty"},
		{"redis: {enabled: true, url: 'redis://a', addrs: ['a:1']}", "redis.url: says everything"},
		{"redis: {enabled: true, url: 'redis://a', password: {value: x}}", "redis.url: says everything"},
		{"redis: {enabled: true, url: 'redis://a', urlFrom: {value: x}}", "redis.url: is set together with redis.urlFrom"},
		{"redis: {enabled: true, addrs: ['a:1'], username: me}", "redis.password: is missing"},
		{"redis: {enabled: true, addrs: ['a:1'], sentinel: {masterName: m, username: me}}", "redis.sentinel.password: is missing"},
		{"redis: {enabled: true, addrs: ['a:1'], sentinel: {password: {value: x}}}", "redis.sentinel.masterName: is missing"},
		{"redis: {enabled: true, addrs: ['a:1'], cluster: true, sentinel: {masterName: m}}", "redis.cluster: has no Sentinels"},
		{"redis: {enabled: true, addrs: ['a:1', 'b:1']}", "redis.addrs: are several servers"},
		{"redis: {enabled: true, addrs: ['a:1'], cluster: true, db: 1}", "redis.db: a Cluster has only"},
		{"redis: {enabled: true, addrs: ['a:1'], tls: {secret: certs}}", "redis.tls: is not enabled"},
		{"redis: {enabled: true, addrs: ['a:1'], tls: {enabled: true, secret: certs, cert: tls.crt}}", "redis.tls: cert and key"},
		{"config: {upstream: {api_key: '${OPENAI_API_KEY}'}}", "config: refers to OPENAI_API_KEY"},
		{"config: {tenants: [{name: a, api_keys: [{env: TEAM_KEY}]}]}", "config: refers to TEAM_KEY"},
		{"config: {shutdown: {timeout: '${HOW_LONG}'}}\nsecrets: {HOW_LONG: {value: 5m}}", "config.shutdown.timeout:"},
		{"extraEnv: [{name: DEWPOINT_SHUTDOWN_TIMEOUT, value: 1h}]", "DEWPOINT_SHUTDOWN_TIMEOUT is the chart's own"},
		{"extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]", "GOMEMLIMIT is the chart's own"},
		{"secrets: {ADMIN_TOKEN: {value: x}}", "ADMIN_TOKEN is the chart's own"},
		{"redis: {enabled: true, addrs: ['a:1']}\nautoscaling: {enabled: true}\nresources: {requests: null}", "autoscaling.cpu: is a share"},
		{"redis: {enabled: true, addrs: ['a:1']}\nautoscaling: {enabled: true, minReplicas: 20}", "autoscaling.minReplicas: is above"},
		{"redis: {enabled: true, addrs: ['a:1']}\nautoscaling: {enabled: true, cpu: {enabled: false}, inFlight: {enabled: false}}", "autoscaling: neither"},
		{"resources: {limits: {memory: 1000m}}", "resources.limits.memory:"},
	} {
		_, err := render(t, from(t, tt.values))
		if err == nil || !strings.Contains(err.Error(), tt.key) {
			t.Errorf("%s\n  should name %s, says: %v", tt.values, tt.key, err)
		}
	}
}

// What is near to a refused value, and right.
func TestGoodValuesAreTaken(t *testing.T) {
	for _, values := range []string{
		"redis: {enabled: true, url: 'rediss://redis:6380/1'}",
		"redis: {enabled: true, url: 'redis://user:${PASSWORD}@redis'}\nsecrets: {PASSWORD: {name: a, key: b}}",
		"config: {store: {type: redis, redis: {addrs: ['redis:6379']}}}\nreplicaCount: 3",
		"redis: {enabled: true}\nconfig: {store: {redis: {addrs: ['redis:6379']}}}\nautoscaling: {enabled: true}",
		"config: {upstream: {api_key: '${FROM_ELSEWHERE}'}}\nextraEnvFrom: [{secretRef: {name: all}}]",
		"config: {upstream: {api_key: '${OWN}'}}\nextraEnv: [{name: OWN, valueFrom: {secretKeyRef: {name: a, key: b}}}]",
		"config: {listen: ':80', admin: {listen: '[::]:90'}}",
		"config: {upstream: {base_url: 'https://x/$${y}'}}",
		"config: {condenser: {max_size: 10}}",
		"config: {condenser: {type: structured, max_size: 10, timeout: 1m30s}}",
		"config: {limits: {max_body: 1048576, bytes_in_flight: 1GiB}}",
		"extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]\nmemoryLimitPercent: 0",
		"podDisruptionBudget: {minAvailable: 50%}\nreplicaCount: 2\nredis: {enabled: true, addrs: ['a:1']}",
		"replicaCount: 0",
		"global: {a: b}",
		"priorityClassName: '1'\nserviceAccount: {name: 'on'}\npersistence: {storageClass: 'true', size: 8}\npodLabels: {a: '1e3'}",
		"adminToken: {name: '1', key: '2'}\nserviceMonitor: {enabled: true}\nimagePullSecrets: [{name: '3'}]\nimage: {tag: '1.10'}",
		"ingress: {enabled: true, className: '1', hosts: [{host: '2'}], tls: [{secretName: '3'}]}\nservice: {loadBalancerClass: '4'}",
		"redis: {enabled: true, addrs: ['1:1'], username: '1', password: {name: '2', key: '3'}, tls: {enabled: true, secret: '4', serverName: '5'}}",
	} {
		rel, err := render(t, from(t, values))
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		decode(t, rel.Manifest, rel.Info.Notes)
	}
}
