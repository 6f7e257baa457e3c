{{- /* list CONTEXT CONFIG, as in what follows. The configuration is a folder, never a subPath: the kubelet turns a link in
       it, which is what the process watches. */}}
{{- define "dewpoint.mounts" -}}
{{- $root := index . 0 -}}
- name: config
  mountPath: /etc/dewpoint
  readOnly: true
{{- range $i, $from := $root.Values.tenantsFrom }}
- name: tenants-{{ $i }}
  mountPath: /etc/dewpoint-tenants/{{ if .secret }}secret-{{ .secret }}{{ else }}configmap-{{ .configMap }}{{ end }}
  readOnly: true
{{- end }}
{{- if ne (index . 1).store.type "redis" }}
- name: data
  mountPath: /var/lib/dewpoint
{{- end }}
{{- if and $root.Values.redis.enabled $root.Values.redis.tls.secret }}
- name: redis-tls
  mountPath: /etc/dewpoint-redis
  readOnly: true
{{- end }}
{{- with $root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "dewpoint.volumes" -}}
{{- $root := index . 0 -}}
- name: config
  configMap:
    name: {{ include "dewpoint.fullname" $root | quote }}
{{- /* A volume for each: in a projected one a key that two of them have is the later's, which would hide a tenant. */}}
{{- range $i, $from := $root.Values.tenantsFrom }}
- name: tenants-{{ $i }}
  {{- if .secret }}
  secret:
    secretName: {{ .secret | quote }}
  {{- else }}
  configMap:
    name: {{ .configMap | quote }}
  {{- end }}
    defaultMode: 0440
{{- end }}
{{- if ne (index . 1).store.type "redis" }}
- name: data
  {{- include "dewpoint.dataVolume" $root | nindent 2 }}
{{- end }}
{{- if and $root.Values.redis.enabled $root.Values.redis.tls.secret }}
- name: redis-tls
  secret:
    secretName: {{ $root.Values.redis.tls.secret | quote }}
    defaultMode: 0440
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "dewpoint.dataVolume" -}}
{{- if .Values.persistence.enabled -}}
persistentVolumeClaim:
  claimName: {{ .Values.persistence.existingClaim | default (include "dewpoint.fullname" .) | quote }}
{{- else -}}
emptyDir: {}
{{- end }}
{{- end }}

{{- define "dewpoint.topologySpread" -}}
{{- if and .Values.topologySpread.enabled (include "dewpoint.several" .) }}
{{- with .Values.topologySpread }}
topologySpreadConstraints:
{{- if .constraints }}
  {{- toYaml .constraints | nindent 2 }}
{{- else }}
{{- range $key, $when := dict "kubernetes.io/hostname" .hosts "topology.kubernetes.io/zone" .zones }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $when }}
    labelSelector:
      matchLabels:
        {{- include "dewpoint.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
