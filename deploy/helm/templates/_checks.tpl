{{- /* What a schema cannot say. list CONTEXT CONFIG, as in what follows. */}}
{{- define "dewpoint.checks" -}}
{{- include "dewpoint.checkReplicas" . }}
{{- include "dewpoint.checkStore" . }}
{{- include "dewpoint.checkRedis" (index . 0).Values.redis }}
{{- include "dewpoint.checkReferences" . }}
{{- include "dewpoint.checkOverrides" . }}
{{- include "dewpoint.checkAutoscaling" . }}
{{- $root := index . 0 }}
{{- $config := index . 1 }}
{{- if and $root.Values.serviceMonitor.enabled $root.Values.podMonitor.enabled }}
{{- fail "podMonitor.enabled: serviceMonitor.enabled is true as well, so that each pod would be scraped twice: enable one" }}
{{- end }}
{{- if and $root.Values.tenantsFrom $root.Values.config.tenants_dir }}
{{- fail "config.tenants_dir: is where tenantsFrom is mounted: remove it, or tenantsFrom" }}
{{- end }}
{{- if and (hasKey $config "tenants") (not $config.tenants) (not $config.tenants_dir) }}
{{- fail "config.tenants: is empty, so that any key would pass: add a tenant, or remove tenants to open the proxy to all" }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkReplicas" -}}
{{- $values := (index . 0).Values }}
{{- if ne (index . 1).store.type "redis" }}
{{- if kindIs "invalid" $values.replicaCount }}
{{- fail "replicaCount: is null, which leaves the number to an autoscaler, and the embedded store allows one pod: set it to 1, or redis.enabled to true" }}
{{- end }}
{{- if and $values.updateStrategy (ne $values.updateStrategy.type "Recreate") }}
{{- fail "updateStrategy.type: the embedded store's file is held by one process: set it to Recreate, or redis.enabled to true" }}
{{- end }}
{{- if gt (int $values.replicaCount) 1 }}
{{- fail (printf "replicaCount: %d pods cannot share the embedded store, its file is held by one process: set replicaCount to 1, or redis.enabled to true" (int $values.replicaCount)) }}
{{- end }}
{{- if $values.autoscaling.enabled }}
{{- fail "autoscaling.enabled: the embedded store allows one pod, its file is held by one process: set it to false, or redis.enabled to true" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkStore" -}}
{{- $values := (index . 0).Values }}
{{- $volume := $values.persistence }}
{{- $store := (index . 1).store }}
{{- $redis := $store.redis | default dict }}
{{- $overridden := or $values.extraEnvFrom (contains "DEWPOINT_STORE_" (list $values.extraEnv $values.secrets | toJson)) }}
{{- if $overridden }}
{{- else if eq $store.type "redis" }}
{{- if not (or $redis.url $redis.addrs) }}
{{- fail (ternary "redis.addrs: is empty: name at least one server as host:port, or set redis.url" "config.store.type: is redis without a server: set redis.enabled and redis.addrs instead" $values.redis.enabled) }}
{{- end }}
{{- else if and $volume.enabled (not $volume.existingClaim) }}
{{- $cap := dig "max_size" "4GiB" $store }}
{{- $bytes := include "dewpoint.bytes" (list "persistence.size" $volume.size) | float64 }}
{{- if lt $bytes (include "dewpoint.bytes" (list "config.store.max_size" $cap) | float64 | mulf 1.5) }}
{{- fail (printf "persistence.size: %v is less than the store's file may take, 1.5 times config.store.max_size (%v): raise it, or lower max_size" $volume.size $cap) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkRedis" -}}
{{- if .enabled }}
{{- if and .url .urlFrom }}
{{- fail "redis.url: is set together with redis.urlFrom: keep one" }}
{{- end }}
{{- if and (or .url .urlFrom) (or .addrs .username .password .db .tls.enabled) }}
{{- fail "redis.url: replaces addrs, username, password, db and tls.enabled: set one or the other (rediss:// is TLS, urlFrom holds a password)" }}
{{- end }}
{{- if and (gt (len .addrs) 1) (not .cluster) (not .sentinel.masterName) }}
{{- fail "redis.addrs: lists several servers: set redis.cluster or redis.sentinel.masterName, or keep one" }}
{{- end }}
{{- if and .cluster .db }}
{{- fail "redis.db: a Cluster has only database 0: remove it" }}
{{- end }}
{{- if and .username (not .password) }}
{{- fail "redis.password: is missing while redis.username is set: set it, or remove the name" }}
{{- end }}
{{- include "dewpoint.checkSentinel" . }}
{{- include "dewpoint.checkTLS" . }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkSentinel" -}}
{{- $sentinel := .sentinel }}
{{- if and .cluster $sentinel.masterName }}
{{- fail "redis.cluster: has no Sentinels: remove redis.sentinel.masterName, or set cluster to false" }}
{{- end }}
{{- if and (or $sentinel.username $sentinel.password) (not $sentinel.masterName) }}
{{- fail "redis.sentinel.masterName: is missing while there is a password for the Sentinels: name the master" }}
{{- end }}
{{- if and $sentinel.username (not $sentinel.password) }}
{{- fail "redis.sentinel.password: is missing while redis.sentinel.username is set: set it, or remove the name" }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkTLS" -}}
{{- $tls := .tls }}
{{- if and (or $tls.secret $tls.serverName) (not (or $tls.enabled (hasPrefix "rediss://" .url) .urlFrom)) }}
{{- fail "redis.tls: is not enabled, and has a secret or a serverName: enable it, or remove them" }}
{{- end }}
{{- if and $tls.secret (ne (empty $tls.cert) (empty $tls.key)) }}
{{- fail "redis.tls: cert and key must be set together" }}
{{- end }}
{{- end }}

{{- /* Every ${NAME}, and every env of a tenant's key, must be in the container's environment. */}}
{{- define "dewpoint.checkReferences" -}}
{{- $root := index . 0 }}
{{- $known := include "dewpoint.secrets" $root | fromYaml | keys }}
{{- range $root.Values.extraEnv }}
{{- $known = append $known .name }}
{{- end }}
{{- $used := list }}
{{- range regexFindAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" (replace "$${" "" (index . 1 | toJson)) -1 }}
{{- $used = append $used (trimPrefix "${" . | trimSuffix "}") }}
{{- end }}
{{- range (index . 1).tenants }}
{{- range .api_keys }}
{{- with .env }}{{- $used = append $used . }}{{- end }}
{{- end }}
{{- end }}
{{- if not $root.Values.extraEnvFrom }}
{{- range $used | uniq }}
{{- if not (has . $known) }}
{{- fail (printf "config: refers to %s, which the container does not have: add it to secrets" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Variables override config; these would part it from the ports, probes and periods that the chart derives of it. */}}
{{- define "dewpoint.checkOverrides" -}}
{{- $root := index . 0 }}
{{- $names := keys $root.Values.secrets }}
{{- range $root.Values.extraEnv }}
{{- $names = append $names .name }}
{{- end }}
{{- range $names }}
{{- if regexMatch "^(DEWPOINT_(CONFIG|LISTEN|ADMIN_.*|SHUTDOWN_.*|STORE_TYPE|STORE_PATH|TENANTS_DIR)|ADMIN_TOKEN|REDIS_URL|REDIS_PASSWORD|REDIS_SENTINEL_PASSWORD|GOMEMLIMIT)$" . }}
{{- if not (and (eq . "GOMEMLIMIT") (not $root.Values.memoryLimitPercent)) }}
{{- fail (printf "secrets and extraEnv: %s is the chart's own: set the value that it comes from" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dewpoint.checkAutoscaling" -}}
{{- $values := (index . 0).Values }}
{{- $scaling := $values.autoscaling }}
{{- if $scaling.enabled }}
{{- if and $scaling.cpu.enabled (not (dig "requests" "cpu" "" $values.resources)) }}
{{- fail "autoscaling.cpu: is a share of resources.requests.cpu, which is not set: set it, or autoscaling.cpu.enabled to false" }}
{{- end }}
{{- if not (or $scaling.cpu.enabled $scaling.inFlight.enabled) }}
{{- fail "autoscaling: neither cpu nor inFlight is enabled: enable one" }}
{{- end }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas: is above maxReplicas: lower it" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* "true" where there can be more than one pod. */}}
{{- define "dewpoint.several" -}}
{{- if or .Values.autoscaling.enabled (kindIs "invalid" .Values.replicaCount) (gt (int .Values.replicaCount) 1) }}true{{- end }}
{{- end }}
