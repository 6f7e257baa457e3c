{{- /* The whole configuration, as YAML: what the chart makes, and config over it. */}}
{{- define "dewpoint.config" -}}
{{- $admin := dict "listen" "0.0.0.0:9090" "token" "${ADMIN_TOKEN}" }}
{{- $made := dict "listen" "0.0.0.0:8080" "admin" $admin "store" (include "dewpoint.store" . | fromYaml) }}
{{- if .Values.tenantsFrom }}
{{- $_ := set $made "tenants_dir" "/etc/dewpoint-tenants" }}
{{- end }}
{{- $config := mustMergeOverwrite $made (deepCopy .Values.config) }}
{{- if kindIs "map" $config.tenants }}
{{- range $name, $tenant := $config.tenants }}
{{- if kindIs "invalid" $tenant }}{{- $_ := unset $config.tenants $name }}{{- end }}
{{- end }}
{{- end }}
{{- $config | toYaml }}
{{- end }}

{{- define "dewpoint.store" -}}
{{- if .Values.redis.enabled -}}
type: redis
redis:
  {{- include "dewpoint.redis" . | nindent 2 }}
{{- else -}}
type: embedded
path: /var/lib/dewpoint/dewpoint.db
{{- end }}
{{- end }}

{{- define "dewpoint.redis" -}}
{{- $redis := .Values.redis }}
{{- if $redis.urlFrom -}}
url: ${REDIS_URL}
{{ else if $redis.url -}}
url: {{ $redis.url | quote }}
{{ else -}}
addrs: {{ $redis.addrs | toJson }}
{{ end }}
{{- with $redis.db }}
db: {{ . }}
{{- end }}
{{- if $redis.cluster }}
cluster: true
{{- end }}
{{- with $redis.username }}
username: {{ . | quote }}
{{- end }}
{{- if $redis.password }}
password: ${REDIS_PASSWORD}
{{- end }}
{{- include "dewpoint.sentinel" $redis.sentinel }}
{{- include "dewpoint.redisTLS" $redis.tls }}
{{- end }}

{{- define "dewpoint.sentinel" -}}
{{- with .masterName }}
master_name: {{ . | quote }}
{{- end }}
{{- with .username }}
sentinel_username: {{ . | quote }}
{{- end }}
{{- if .password }}
sentinel_password: ${REDIS_SENTINEL_PASSWORD}
{{- end }}
{{- end }}

{{- define "dewpoint.redisTLS" -}}
{{- if .enabled }}
tls: true
{{- end }}
{{- with .serverName }}
tls_server_name: {{ . | quote }}
{{- end }}
{{- if .secret }}
{{- range $key, $file := dict "tls_ca" .ca "tls_cert" .cert "tls_key" .key }}
{{- with $file }}
{{ $key }}: /etc/dewpoint-redis/{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What checksum/config covers. A hot reload takes up the sections that are left out here. */}}
{{- define "dewpoint.readAtStart" -}}
{{- $config := include "dewpoint.config" . }}
{{- if eq .Values.configReload "hot" }}
{{- $read := omit ($config | fromYaml) "upstream" "llms" "models" "condenser" "observe" "notify" "tenants" "tenants_dir" "tenants_trusted" "tenants_hosts" "cors" "session" "log_content" "holdout" "knowledge" "memory" }}
{{- set $read "limits" (omit ($read.limits | default dict) "tenant") | toYaml }}
{{- else }}
{{- $config }}
{{- end }}
{{- end }}

{{- /* How many seconds a pod is given to end: list CONTEXT CONFIG. */}}
{{- define "dewpoint.gracePeriod" -}}
{{- $delay := include "dewpoint.seconds" (list "config.shutdown.delay" .shutdown.delay) }}
{{- $timeout := include "dewpoint.seconds" (list "config.shutdown.timeout" .shutdown.timeout) }}
{{- add (ceil (addf $delay $timeout)) 15 }}
{{- end }}

{{- /* A duration as Go writes it (1h30m, 5s, 0), in seconds: list KEY DURATION. */}}
{{- define "dewpoint.seconds" -}}
{{- $text := index . 1 | toString }}
{{- if not (regexMatch "^(0|([0-9]+(\\.[0-9]+)?(h|m|s|ms))+)$" $text) }}
{{- fail (printf "%s: %q is not a duration that the chart understands: write it as 5s, 5m or 1h30m" (index . 0) $text) }}
{{- end }}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|h|m|s)" $text -1 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $seconds = addf $seconds (mulf (trimSuffix $unit . | float64) (get (dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001) $unit)) }}
{{- end }}
{{- $seconds }}
{{- end }}

{{- /* The port of host:port. */}}
{{- define "dewpoint.port" -}}
{{- regexFind "[0-9]+$" . }}
{{- end }}
