# The learner on a ROS 2 distribution:  docker build --build-arg ROS_DISTRO=kilted -t semiparam .
# The demo in it, with its report left here:
#   docker run --rm -v "$PWD:/out" semiparam semiparam demo --out /out/demo_out
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ENV DEBIAN_FRONTEND=noninteractive

WORKDIR /ws
COPY package.xml src/semiparam_dynamics/package.xml
# hadolint ignore=DL3008
RUN apt-get update \
    && rosdep update --rosdistro "${ROS_DISTRO}" \
    && rosdep install --from-paths src --ignore-src -y \
    && apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*

# What only PyPI has: bags, the simulator and its robot; and for Humble, whose messages need NumPy 1,
# what Ubuntu 22.04 has too old. The distribution's Python is not touched.
ENV VIRTUAL_ENV=/opt/semiparam
RUN python3 -m venv --system-site-packages "${VIRTUAL_ENV}" \
    && "${VIRTUAL_ENV}/bin/pip" install --no-cache-dir \
       'rosbags>=0.11.7' 'mujoco>=3.2' 'icub-models>=3' \
       $([ "${ROS_DISTRO}" != humble ] || echo 'numpy<2 scipy>=1.11 numba>=0.58.1 scikit-learn>=1.4 matplotlib>=3.6')
ENV PATH="${VIRTUAL_ENV}/bin:${PATH}"

COPY . src/semiparam_dynamics
RUN . "/opt/ros/${ROS_DISTRO}/setup.bash" \
    && colcon build --event-handlers console_direct+ \
    && . install/setup.bash \
    && semiparam compile

RUN printf '#!/bin/bash\n. /ws/install/setup.bash\nexec "$@"\n' > /entry.sh && chmod +x /entry.sh
ENTRYPOINT ["/entry.sh"]
CMD ["ros2", "launch", "semiparam_dynamics", "inverse_dynamics.launch.py"]
