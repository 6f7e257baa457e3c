{{- /* Every secret by the name of its variable: those in secrets, and those that the chart's own config refers to. */}}
{{- define "dewpoint.secrets" -}}
{{- $all := deepCopy .Values.secrets }}
{{- if .Values.redis.enabled }}
{{- range $name, $secret := dict "REDIS_URL" .Values.redis.urlFrom "REDIS_PASSWORD" .Values.redis.password "REDIS_SENTINEL_PASSWORD" .Values.redis.sentinel.password }}
{{- if $secret }}
{{- $_ := set $all $name $secret }}
{{- end }}
{{- end }}
{{- end }}
{{- $token := dict "name" (include "dewpoint.adminSecret" .) "key" (.Values.adminToken.key | default "token") }}
{{- set $all "ADMIN_TOKEN" $token | toYaml }}
{{- end }}

{{- define "dewpoint.adminSecret" -}}
{{- .Values.adminToken.name | default (printf "%s-admin" (include "dewpoint.fullname" .)) }}
{{- end }}

{{- /* list CONTEXT CONFIG. What the image sets for itself would override the configuration's file: it is set to the same. */}}
{{- define "dewpoint.env" -}}
{{- $root := index . 0 }}
{{- $config := index . 1 }}
- name: DEWPOINT_LISTEN
  value: {{ $config.listen | quote }}
{{- with $config.store.path }}
- name: DEWPOINT_STORE_PATH
  value: {{ . | quote }}
{{- end }}
{{- $own := printf "%s-secrets" (include "dewpoint.fullname" $root) }}
{{- range $name, $secret := include "dewpoint.secrets" $root | fromYaml }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name | default $own | quote }}
      key: {{ $secret.key | default $name | quote }}
{{- end }}
{{- with include "dewpoint.memoryLimit" $root }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* A share of the memory limit in bytes; nothing if there is no limit. */}}
{{- define "dewpoint.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString }}
{{- if and $limit .Values.memoryLimitPercent }}
{{- $bytes := include "dewpoint.bytes" (list "resources.limits.memory" $limit) | float64 }}
{{- mulf $bytes .Values.memoryLimitPercent 0.01 | floor | int64 }}
{{- end }}
{{- end }}

{{- /* The bytes of a size as Kubernetes or Dewpoint writes it (512Mi, 4GiB, 4gib): list KEY SIZE. */}}
{{- define "dewpoint.bytes" -}}
{{- $size := index . 1 | toString | trimSuffix "b" | trimSuffix "B" }}
{{- $unit := regexFind "[A-Za-z]*$" $size }}
{{- $powers := dict "" 1 "K" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "KI" 1024 "MI" 1048576 "GI" 1073741824 "TI" 1099511627776 "PI" 1125899906842624 "EI" 1152921504606846976 }}
{{- if or (eq $unit "m") (not (hasKey $powers (upper $unit))) }}
{{- fail (printf "%s: %q has a unit that the chart does not know: write it as 512M or 1G, with an i behind it for powers of 1024" (index . 0) $size) }}
{{- end }}
{{- mulf (trimSuffix $unit $size | float64) (get $powers (upper $unit)) }}
{{- end }}
