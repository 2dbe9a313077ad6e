// Package homeassistant shows sites to Home Assistant by MQTT: entities that it discovers by
// itself, their states, and buttons. It is a client of the interface like any other, and
// reaches the sites that it is given alone.
package homeassistant
