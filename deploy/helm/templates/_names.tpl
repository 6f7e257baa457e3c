{{- define "dewpoint.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* At most 50 characters, so that what is appended to it stays a name. */}}
{{- define "dewpoint.fullname" -}}
{{- $name := include "dewpoint.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dewpoint.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "dewpoint.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "dewpoint.image" -}}
{{- $registry := dig "imageRegistry" "" .Values.global | default .Values.image.registry }}
{{- $name := list $registry .Values.image.repository | compact | join "/" }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* What a Deployment's selector holds can never change. */}}
{{- define "dewpoint.selector" -}}
app.kubernetes.io/name: {{ include "dewpoint.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "dewpoint.labels" -}}
{{ include "dewpoint.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The head of an object's metadata: list CONTEXT SUFFIX, and a NAMESPACE other than the release's. */}}
{{- define "dewpoint.metadata" -}}
{{- $root := index . 0 -}}
name: {{ printf "%s%s" (include "dewpoint.fullname" $root) (index . 1) | quote }}
namespace: {{ gt (len .) 2 | ternary (last .) "" | default $root.Release.Namespace | quote }}
labels:
  {{- include "dewpoint.labels" $root | nindent 2 }}
{{- end }}
